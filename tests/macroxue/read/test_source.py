"""Rows by number: the columns of the reader, and the line of the raw file of each."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from gristmill.loading import Grouped, Loader, Plan
from gristmill.macroxue import StepDataset
from tests.sample_root import SampleRoot

MOVES = ("up", "down", "left", "right")


@pytest.mark.parametrize("folder", ["packs/sample_d6", "pools/samples"])
def test_rows_of_a_batch_are_the_lines_that_their_origins_name(
    sample_root: SampleRoot, folder: str
) -> None:
    data = StepDataset(sample_root.data / "macroxue" / folder)
    train, _ = data.split(0.2)
    batch = next(iter(Loader(Plan(data.source(train), seed=5), 8, form="numpy")))
    assert set(batch["number"].tolist()) <= set(train.all_rows().tolist())
    for name, column in data.batch(batch["number"]).items():
        assert np.array_equal(batch[name], column)
    for row, number in enumerate(batch["number"].tolist()):
        *_, last = data.source(train).origin(number)
        facts = last.facts()
        begin, end = map(int, str(facts["raw_line_bytes"]).split()[0].split("-"))
        text = gzip.decompress((sample_root.data / str(facts["raw_steps"])).read_bytes())
        line = json.loads(text[begin:end])
        assert line["board"] == batch["ranks"][row].tolist()
        assert MOVES.index(line["move"]) == batch["move_dir"][row]
        assert line["step_index"] == batch["step_index"][row]


def test_one_row_of_each_run_an_epoch(sample_root: SampleRoot) -> None:
    data = StepDataset(sample_root.data / "macroxue/packs/sample_d6")
    source = data.source()
    runs = [run.id for run in data.run_table]
    view = Grouped(source, source.game_bounds)  # type: ignore[attr-defined]
    (batch,) = Loader(Plan(view, seed=1), len(runs), form="numpy")
    assert sorted(batch["run_id"].tolist()) == sorted(runs)


def test_a_value_sidecar_adds_columns_and_changes_no_order(sample_root: SampleRoot) -> None:
    pack, values = (
        sample_root.data / "macroxue" / kind / "sample_d6" for kind in ("packs", "values")
    )
    plain, joined = StepDataset(pack).source(), StepDataset(pack, values=values).source()
    assert plain.identity.text == joined.identity.text
    numbers = np.array([3, 0])
    assert set(joined.read(numbers)) > set(plain.read(numbers))

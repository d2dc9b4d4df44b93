"""The tables of datasets: what chooses them, what they draw, and which row the page draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gristmill.browse.opening import open_table
from gristmill.browse.source import OF_CONTENTS
from gristmill.contract import GristmillError
from gristmill.puzzles.read.rows import Dataset
from gristmill.puzzles.show.tables import facts_of, sample, tables
from tests.drawings import texts
from tests.puzzles.small_datasets import SMALL, Small, arc, write


class _Files:
    def checked(self, name: str) -> None:
        """Files without a record."""


@pytest.mark.parametrize("kind", SMALL)
def test_each_set_of_each_split_is_a_table_that_options_choose(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path / kind, SMALL[kind]())
    found = list(tables(f"puzzles/{kind}", folder, _Files()))  # type: ignore[arg-type]
    assert [each.name for each in found] == ["train/all", "test/all"]
    for each, split in zip(found, ("train", "test"), strict=True):
        assert each.chosen == {"split": split, "set": "all"}
        (record,) = each.open().read(0, 1, 1.0)
        drawn, pictures = list(each.drawn(record, {})), each.pictures(record)
        assert len(drawn) == len(pictures) == (kind != "towers")
        if pictures:
            assert texts(pictures[0].svg)[0].startswith(f"{split} 0 · ")


def test_names_cannot_steer_a_page_or_a_terminal(tmp_path: Path) -> None:
    folder = write(tmp_path / "arc", arc("evil\x1b[31m<b>"))
    first = next(iter(tables("puzzles/arc", folder, _Files())))  # type: ignore[arg-type]
    (record,) = first.open().read(0, 1, 1.0)
    assert (
        "\x1b" not in first.pictures(record)[0].svg and "<b>" not in first.pictures(record)[0].svg
    )
    console = Console(color_system=None, width=80)
    with console.capture() as capture:
        console.print(*first.drawn(record, {}))
    assert "\x1b" not in capture.get()


def _noise(rows: int, drawable: int) -> Small:
    """Pairs of ARC of which one alone is small."""
    tokens = np.random.default_rng(0).integers(2, 12, (rows, 900)).astype(np.uint8)
    if drawable < rows:
        tokens[drawable] = SMALL["arc"]().inputs[0]
    return Small(
        kind="arc",
        inputs=tokens,
        labels=tokens,
        vocab_size=12,
        identifiers=[0] * rows,
        examples=[1] * rows,
        puzzles=[1] * rows,
        origins=[(-1, row, 0) for row in range(rows)],
    )


@pytest.mark.parametrize(("drawable", "expected"), [(0, 0), (3, 3), (25, 0), (99, 0)])
def test_the_page_draws_the_first_row_whose_picture_fits(
    tmp_path: Path, drawable: int, expected: int
) -> None:
    assert sample(write(tmp_path / "d", _noise(30, drawable))) == expected


def test_the_page_of_a_kind_without_a_drawing_has_the_first_row(tmp_path: Path) -> None:
    assert sample(write(tmp_path / "d", SMALL["towers"]())) == 0


@pytest.mark.parametrize("config", [{"height": "x"}, {"height": 1, "width": 7}])
def test_the_page_of_a_damaged_dataset_has_no_row(
    tmp_path: Path, config: dict[str, object]
) -> None:
    small = replace(SMALL["towers"](), kind="grid", config=config, origins=[(-1, 0, 0)] * 2)
    with pytest.raises((GristmillError, *OF_CONTENTS)):
        sample(write(tmp_path / "d", small))


def test_the_lines_on_a_folder_count_what_is_in_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "d", replace(arc(), origins=None))
    lines = list(facts_of("puzzles/arc", folder))
    assert lines[0] == "train/all: 1 group, 2 puzzles, 4 examples"
    assert lines[-1] == "identifiers.json: 3 names"
    assert any(line.startswith("test/dataset.json: pad_id 0, ") for line in lines)
    assert Dataset(folder).kind is None and open_table(folder, name="train/all").count == 4

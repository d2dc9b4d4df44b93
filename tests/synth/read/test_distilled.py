"""Rows of distill datasets by number: the columns of their files, and the raw row of each."""

from __future__ import annotations

import pickle
import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.loading import Loader, Plan, mixture
from gristmill.reading import StaleDataset
from gristmill.synth.read import distill
from gristmill.synth.read.documents import DistilledRows, SynthKDDocuments
from tests.sample_root import SampleRoot


@pytest.fixture
def folders(sample_root: SampleRoot) -> list[Path]:
    return [sample_root.data / "distill/synth" / shard for shard in ("02", "00")]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_rows_of_a_batch_are_those_of_the_files(folders: list[Path], split: str) -> None:
    source = DistilledRows(folders, split)
    rows = [
        row
        for folder in folders
        for each in distill.batches(folder, split)
        for row in each.to_pylist()
    ]
    assert len(source) == len(rows) == source.cuts[-1] > source.cuts[1] > 0
    assert source.lengths().tolist() == [len(row["input_ids"]) for row in rows]
    mixed = mixture(
        {each.name: DistilledRows([each], split) for each in folders}, epochs={"00": 1, "02": 1}
    )
    loaders = [Loader(Plan(each, seed=5), 7, form="numpy") for each in (source, mixed)]
    for batch in chain(*loaders):
        assert batch["input_ids"].shape[1] == batch["length"].max()
        for at, number in enumerate(batch["number"] + source.cuts[batch["source"]]):
            length = int(batch["length"][at])
            for name, behind in (("input_ids", 0), ("labels", -100)):
                assert batch[name][at, :length].tolist() == rows[number][name]
                assert (batch[name][at, length:] == behind).all()
    assert source.read(np.empty(0, np.int64))["labels"].shape == (0, 0)


def test_rows_lead_to_their_raw_rows(folders: list[Path], sample_root: SampleRoot) -> None:
    source = DistilledRows(folders)
    for number in (0, int(source.cuts[1]) - 1, int(source.cuts[1]), len(source) - 1):
        folder = folders[int(number >= source.cuts[1])]
        row = distill.row(folder, "train", number - int(source.cuts[1]) * (folder == folders[1]))
        *_, raw = (step.facts() for step in source.origin(number))
        table = pq.read_table(sample_root.data / str(raw["raw_file"]))
        (found,) = table.slice(int(str(raw["raw_row"])) - 1, 1).to_pylist()
        assert f"synth:{found['synth_id']}".endswith(row["id"].partition(":")[2])


def test_it_can_be_pickled_until_it_is_rebuilt(folders: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    source = DistilledRows([copy])
    again = pickle.loads(pickle.dumps(source))
    expected = source.read(np.array([3, 0]))
    for name, column in again.read(np.array([3, 0])).items():
        assert np.array_equal(column, expected[name])
    late = pickle.loads(pickle.dumps(source))
    shutil.rmtree(copy)
    shutil.copytree(folders[1], copy)
    with pytest.raises(StaleDataset):
        late.read(np.array([0]))
    assert np.array_equal(source.read(np.array([3, 0]))["labels"], expected["labels"])


def test_it_is_mixed_by_tokens_with_its_like_and_not_with_documents(
    folders: list[Path], sample_root: SampleRoot
) -> None:
    one, other = (DistilledRows([folder]) for folder in folders)
    lengths = one.lengths()
    mixed = mixture({"a": one, "b": other}, tokens={"a": int(lengths[:3].sum()), "b": 1})
    assert mixed.quotas == (3, 1)
    documents = SynthKDDocuments([sample_root.data / "megatron/synth_kd_v1/train/shard_00_tokens"])
    unlike = mixture({"a": one, "b": documents}, epochs={"a": 1, "b": 1})
    with pytest.raises(GristmillError, match="differ in the column 'input_ids'"):
        list(Loader(Plan(unlike, seed=1), 64, form="numpy"))


@pytest.mark.parametrize("name", ["train/state.json", "train/data-00000-of-00001.arrow"])
def test_a_missing_or_damaged_file_is_named(folders: list[Path], tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    size = (copy / name).stat().st_size
    (copy / name).write_bytes(b"\0" * size)
    with pytest.raises(BadInput, match=name.rpartition("/")[2]):
        DistilledRows([copy], verify="none")
    shutil.copyfile(folders[0] / name, copy / name)
    with (copy / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BadInput, match=name.rpartition("/")[2]):
        DistilledRows([copy])
    (copy / name).unlink()
    with pytest.raises(BadInput, match=name.rpartition("/")[2]):
        DistilledRows([copy])


def test_a_folder_without_a_record_is_refused(folders: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    (copy / "provenance.json").unlink()
    with pytest.raises(GristmillError, match="has no provenance record"):
        DistilledRows([copy])

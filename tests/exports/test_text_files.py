"""Texts for nanochat: which file is the last one, where files end, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gristmill.contract import GristmillError
from gristmill.exports.table import Split
from gristmill.exports.text_files import text_files
from tests.exports.documents import texts

TRAIN = texts("train", ["a", "b"], ["c"])


def read(out: Path) -> list[list[str]]:
    """The texts of each file, in the order of their names."""
    return [pq.read_table(path)["text"].to_pylist() for path in sorted(out.iterdir())]


@pytest.mark.parametrize(
    ("others", "last"),
    [
        ([texts("test", ["t"])], ["t"]),
        ([texts("test", ["t"]), texts("validation", ["v"], ["w"])], ["v", "w"]),
    ],
)
def test_the_last_file_is_validation_or_test(
    others: list[Split], last: list[str], tmp_path: Path
) -> None:
    counts = text_files([*others, TRAIN], tmp_path)
    assert read(tmp_path) == [["a", "b", "c"], last]
    assert counts == {"shard_00000.parquet": 3, "shard_00001.parquet": len(last)}


def test_files_of_train_end_and_row_groups_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gristmill.exports.text_files._FILE_BYTES", 1)
    monkeypatch.setattr("gristmill.exports.text_files._GROUP", 1)
    text_files([TRAIN, texts("validation", ["v", "w"])], tmp_path)
    assert read(tmp_path) == [["a"], ["b"], ["c"], ["v", "w"]]
    assert pq.ParquetFile(tmp_path / "shard_00003.parquet").num_row_groups == 2


@pytest.mark.parametrize(
    ("splits", "of"), [([TRAIN], "validation"), ([texts("test", ["t"])], "train")]
)
def test_texts_of_one_part_alone_are_refused(splits: list[Split], of: str, tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match=f"no text of {of}: nanochat trains"):
        text_files(splits, tmp_path)

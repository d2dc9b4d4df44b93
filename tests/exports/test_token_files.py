"""Token files of llm.c: where they end, and what they do not take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.exports.table import Split, list_of, required
from gristmill.exports.token_files import token_files

END = 50256
SCHEMA = required({"input_ids": list_of(pa.int32())})


def written(
    batches: Sequence[Sequence[list[int]]], out: Path, tokens: int, patch: pytest.MonkeyPatch
) -> dict[str, list[int]]:
    """The tokens of the files that are written of such documents."""

    def found() -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_pydict({"input_ids": each}, SCHEMA) for each in batches)

    splits = [Split("validation", lambda: SCHEMA, found)]
    patch.setattr("gristmill.exports.token_files.splits_at", lambda _: splits)
    counts = token_files(Path("shards"), out, tokens)
    read = {path.name: np.fromfile(path, "<u2", offset=1024).tolist() for path in out.iterdir()}
    assert counts == {name: len(tokens) for name, tokens in read.items()}
    return dict(sorted(read.items()))


@pytest.mark.parametrize(
    ("tokens", "files"),
    [
        (1, [[END, 1, 2], [END], [END, 3]]),
        (3, [[END, 1, 2], [END, END, 3]]),
        (4, [[END, 1, 2, END], [END, 3]]),
        (5, [[END, 1, 2, END, END, 3]]),
        (99, [[END, 1, 2, END, END, 3]]),
    ],
)
def test_a_file_ends_with_a_whole_document(
    tokens: int, files: list[list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [[[1, 2, END], [END]], [], [[3, END]]]
    found = written(batches, tmp_path / "out", tokens, monkeypatch)
    assert list(found.values()) == files
    assert list(found) == [f"tokens_val_{number:06d}.bin" for number in range(len(files))]


@pytest.mark.parametrize(
    ("document", "rule"),
    [([1], "without its separator"), ([], "without"), ([END + 1, END], "not of"), ([-1], "not of")],
)
def test_other_documents_are_refused_and_nothing_is_left(
    document: list[int], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GristmillError, match=rule):
        written([[[1, END]], [document]], tmp_path / "out", 1, monkeypatch)
    assert list(tmp_path.iterdir()) == []


def test_rows_without_tokens_and_a_folder_that_is_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = required({"a": pa.int64()})
    splits = [Split("train", lambda: schema, lambda: iter(()))]
    monkeypatch.setattr("gristmill.exports.token_files.splits_at", lambda _: splits)
    with pytest.raises(GristmillError, match="give the folder of reasoning/gpt2_shards"):
        token_files(tmp_path, tmp_path / "out")
    with pytest.raises(BadInput, match="give a folder that does not"):
        token_files(tmp_path, tmp_path)

"""Chunks of litdata: their bytes, their index, and where they end."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gristmill.exports.litdata_chunks import chunks
from tests.exports.documents import END, split

BATCHES = [[[1, 2, END], [END]], [], [[3, END]]]


@pytest.mark.parametrize(
    ("most", "files"),
    [(1, [[[1, 2, END]], [[END]], [[3, END]]]), (4, [[[1, 2, END], [END]], [[3, END]]])],
)
def test_a_chunk_holds_whole_documents(
    most: int, files: list[list[list[int]]], tmp_path: Path
) -> None:
    counts = chunks("train", [split(BATCHES)], tmp_path, most)
    index = json.loads((tmp_path / "train/index.json").read_bytes())
    assert [each["filename"] for each in index["chunks"]] == [
        f"chunk-0-{number}.bin" for number in range(len(files))
    ]
    for said, documents in zip(index["chunks"], files, strict=True):
        data = (tmp_path / "train" / said["filename"]).read_bytes()
        (count,) = np.frombuffer(data, "<u4", 1)
        offsets = np.frombuffer(data, "<u4", count + 1, 4)
        found = [np.frombuffer(data[begin:end], "<i4").tolist() for begin, end in pairwise(offsets)]
        assert (found, offsets[0], offsets[-1]) == (documents, 4 * (count + 2), len(data))
        dim = sum(map(len, documents))
        own = {"chunk_size": count, "chunk_bytes": len(data), "dim": dim}
        assert said == {**own, "filename": said["filename"]}
        assert counts.pop(f"train/chunk-0-{files.index(documents)}.bin") == dim
    assert not counts


def test_the_index_differs_where_the_tokens_do(tmp_path: Path) -> None:
    for name, documents in (("a", BATCHES), ("b", BATCHES), ("c", [[[4, END]]])):
        chunks(name, [split(documents)], tmp_path, 9)
    one, same, other = ((tmp_path / name / "index.json").read_bytes() for name in "abc")
    assert one == same
    assert json.loads(one)["updated_at"] != json.loads(other)["updated_at"]

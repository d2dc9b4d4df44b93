"""Token files of llm.c: where they end, and what they do not take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.exports.token_files import token_files
from tests.exports.documents import END, split


def written(
    batches: Sequence[Sequence[list[int]]], out: Path, tokens: int, ids: int = END + 1
) -> dict[str, list[int]]:
    """The tokens of the files that are written of such documents."""
    counts = token_files("val", [split(batches, ids=ids)], out, tokens)
    dtype = "<u2" if ids <= 1 << 16 else "<u4"
    read = {path.name: np.fromfile(path, dtype, offset=1024).tolist() for path in out.iterdir()}
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
    tokens: int, files: list[list[int]], tmp_path: Path
) -> None:
    batches = [[[1, 2, END], [END]], [], [[3, END]]]
    found = written(batches, tmp_path, tokens)
    assert list(found.values()) == files
    assert list(found) == [f"tokens_val_{number:06d}.bin" for number in range(len(files))]


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        *(([1], "without its separator"), ([], "without")),
        *(([END + 1, END], "outside of 50257 ids"), ([-1], "outside")),
    ],
)
def test_other_documents_are_refused(document: list[int], rule: str, tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match=rule):
        written([[[1, END]], [document]], tmp_path, 1)


def test_more_ids_than_16_bits_hold_have_the_header_of_llama_3(tmp_path: Path) -> None:
    assert [*written([[[1 << 16, END]]], tmp_path, 9, 1 << 17).values()] == [[END, 1 << 16]]
    (path,) = tmp_path.iterdir()
    assert np.fromfile(path, "<i4", 3).tolist() == [20240801, 7, 2]

"""Packed files that would be passed over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.file_forms import check_names, unpack_hint


def counts(name: str) -> bool:
    return name.lower().endswith(".json") or name.lower() == "train.csv"


@pytest.mark.parametrize(
    "name",
    ["train.csv.gz", "a/x.json.zip", "train.csv.ZST", "x.JSON.xz", "Train.CSV.bz2", "x.json.7z"],
)
def test_a_packed_file_that_would_count_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"drop/{name}: is packed, .*: unpack it"):
        check_names(
            Path("drop"), ["x.json", name] if "x.json" not in name.lower() else [name], counts
        )


def test_other_names_are_let_be() -> None:
    listed = [
        *(
            "x.json",
            "Train.csv",
            "train.csv.gz",
            "X.JSON.gz",
            "x.json.zip",
            "notes.md",
            "notes.txt.gz",
        ),
        *(".train.csv.gz", ".git/X.JSON", "a/train.csv.gz", "test.csv", "README", "a.gz", "gz"),
    ]
    check_names(Path("drop"), listed, counts)
    check_names(Path("drop"), [], counts)


def test_the_first_packed_file_is_named() -> None:
    assert unpack_hint(["b.tar.GZ", "a/x.zip", "c.json"]) == "; unpack a/x.zip"
    assert unpack_hint(["c.json", "gzip", "a.gz.txt"]) == ""

"""Files that would be passed over in silence: packed ones, and names in capitals."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.near_names import check_names, unpack_hint


def counts(name: str) -> bool:
    return name.endswith(".json") or name == "train.csv"


@pytest.mark.parametrize(
    "name",
    ["train.csv.gz", "a/x.json.zip", "train.csv.ZST", "x.JSON.xz", "Train.CSV.bz2", "x.json.7z"],
)
def test_a_packed_file_that_would_count_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"drop/{name}: is packed, .*: unpack it"):
        check_names(
            Path("drop"), ["x.json", name] if "x.json" not in name.lower() else [name], counts
        )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("x.JSON", "x.json"),
        ("X.Json", "X.json"),
        ("A/B.JSON", "A/B.json"),
        ("TRAIN.CSV", "train.csv"),
        ("Train.csv", "train.csv"),
    ],
)
@pytest.mark.parametrize("beside", [True, False])
def test_a_name_in_capitals_that_would_count_is_refused(
    name: str, meant: str, beside: bool
) -> None:
    listed = [name, meant] if beside else [name]
    with pytest.raises(BadInput, match=f"drop/{name}: would be passed over.*rename it to {meant}"):
        check_names(Path("drop"), listed, counts)


def test_other_names_are_let_be() -> None:
    listed = [
        *("x.json", "train.csv", "train.csv.gz", "x.json.zip", "notes.md", "notes.txt.gz"),
        *(".train.csv.gz", ".git/X.JSON", "a/train.csv.gz", "test.csv", "README", "a.gz", "gz"),
    ]
    check_names(Path("drop"), listed, counts)
    check_names(Path("drop"), [], counts)


def test_the_first_packed_file_is_named() -> None:
    assert unpack_hint(["b.tar.GZ", "a/x.zip", "c.json"]) == "; unpack a/x.zip"
    assert unpack_hint(["c.json", "gzip", "a.gz.txt"]) == ""

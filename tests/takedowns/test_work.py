"""Each family names its rows by keyed hashes, and they leave its drops."""

from pathlib import Path

import pytest

from gristmill.corpora.raw.forgotten import hash_of
from gristmill.layout import DROPS
from gristmill.takedowns import work
from tests.commands.test_forget import FAMILIES

HOW = {"containing": True, "erase": True, "reason": "asked", "shared": 0}


def write(root: Path, name: str) -> Path:
    """A drop, and a second one that has all of it as well."""
    for each in (name, name.replace("/", "/b")):
        (root / DROPS / each).parent.mkdir(parents=True, exist_ok=True)
        FAMILIES[name][0](root / DROPS / each)
    return root / DROPS / name


CASES = [
    ("macroxue/a", "--rows", None),
    ("chess/2024-02.pgn", "--where", "White="),
    ("puzzles/arc-sample", "--rows", "frame"),
    ("puzzles/kaggle", "--rows", "t1"),
    ("puzzles/sudoku-sample", "--where", "question="),
]


@pytest.mark.parametrize(("name", "option", "given"), CASES)
def test_named_rows_and_their_copies_leave_a_drop(tmp_path, name, option, given):
    write(tmp_path, name)
    target = work.target_of(tmp_path, name)
    before = [*target.units()]
    if option == "--where":
        column = given.removesuffix("=")
        units = work.by_column(target, f"{given}{before[2].values[column]}")
    else:
        (tmp_path / "rows.txt").write_text(given or before[0].name)
        units = work.by_rows(target, tmp_path / "rows.txt")
    assert 1 <= len(units) < len(before) / 2 or name in ("macroxue/a", "puzzles/kaggle")
    texts, _ = work.own_texts(target, units)
    assert texts
    lone = work.planned(target, units, texts, HOW | {"containing": False})
    stay = work.raw_rows(tmp_path, lone, stay=True)
    assert stay and all((tmp_path / each).is_file() for each in stay)
    plan = work.planned(target, units, texts, HOW)
    copy = name.replace("/", "/b")
    assert {each["file"].startswith(f"{DROPS}/{copy}") for each in plan.holds} == {True, False}
    assert len(plan.rows[copy]) == len(plan.rows[name])


def test_a_hash_is_of_all_values_and_of_the_key_and_of_no_order() -> None:
    row = {"a": 10**30, "b": "\ud800", "c": [1.5, None, {"d": True}]}
    made = hash_of(b"key", row)
    assert made == hash_of(b"key", dict(reversed(row.items())))
    others = [row | {"a": 10**30 + 1}, row | {"b": "\ud801"}, row | {"e": None}, {"a": 1}]
    assert len({made, hash_of(b"other", row), *(hash_of(b"key", each) for each in others)}) == 6
    assert hash_of(b"key", {"a": 1, "b": 2}) == hash_of(b"key", {"b": 2, "a": 1})

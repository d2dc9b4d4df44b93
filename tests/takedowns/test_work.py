"""Each family names its rows by keyed hashes, and they leave its drops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.chess.samples import write_sample
from gristmill.contract import BadInput
from gristmill.corpora.raw.forgotten import hash_of, key_of
from gristmill.inbox.marks import tombstones_of
from gristmill.layout import DROPS
from gristmill.macroxue.samples import write_drop
from gristmill.puzzles.raw.samples import write_arc_sample, write_sudoku_sample
from gristmill.takedowns import work
from gristmill.takedowns.left_out import rows_in
from gristmill.takedowns.search import Search

HOW = {"containing": True, "erase": True, "reason": "asked", "shared": 0}


def kaggle(path: Path) -> None:
    grids = [[[at] * 9 for _ in range(at)] for at in range(1, 7)]
    pairs = [{"input": grid, "output": grid[::-1]} for grid in grids]
    tasks = {f"t{at}": {"train": [pairs[at]], "test": [pairs[at + 3]]} for at in range(3)}
    solutions = {f"t{at}": [pairs[at + 3]["output"]] for at in range(3)}
    path.mkdir(parents=True)
    for kind, value in (("challenges", tasks), ("solutions", solutions)):
        (path / f"arc-agi_training_{kind}.json").write_text(json.dumps(value))


def write(root: Path, name: str) -> Path:
    """A drop, and a second one that has all of it as well."""
    writers = {
        "macroxue/a": lambda path: write_drop(path, seed=1, games=2, max_moves=30, depth=6),
        "chess/2024-02.pgn": lambda path: write_sample("2024-02", 12, path),
        "puzzles/arc": write_arc_sample,
        "puzzles/kaggle": kaggle,
        "puzzles/sudoku": write_sudoku_sample,
    }
    for each in (name, name.replace("/", "/b")):
        (root / DROPS / each).parent.mkdir(parents=True, exist_ok=True)
        writers[name](root / DROPS / each)
    return root / DROPS / name


CASES = [
    ("macroxue/a", "--rows", None),
    ("chess/2024-02.pgn", "--rows", "2024-02.pgn:3"),
    ("chess/2024-02.pgn", "--where", "White="),
    ("puzzles/arc", "--rows", "frame"),
    ("puzzles/kaggle", "--rows", "t1"),
    ("puzzles/sudoku", "--where", "question="),
    ("puzzles/sudoku", "--rows", "train.csv:5"),
]


@pytest.mark.parametrize(("name", "option", "given"), CASES)
def test_named_rows_and_their_copies_leave_a_drop(tmp_path, name, option, given):
    write(tmp_path, name)
    target, key = work.target_of(tmp_path, name), key_of(tmp_path, makes=True)
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
    work.leave_out(tmp_path, plan)
    found = {(target.path(unit.file), unit.row) for unit in units}
    rows = rows_in(tmp_path, target.drop)
    assert {(path, row) for path in rows for row in rows[path]} == found
    (tmp_path / ".gristmill/key").rename(tmp_path / "other")
    key_of(tmp_path, makes=True)
    with pytest.raises(BadInput, match=r"forgotten.jsonl:1: its hash is of another key"):
        rows_in(tmp_path, target.drop)
    (tmp_path / "other").rename(tmp_path / ".gristmill/key")
    work.erase_rows(tmp_path, plan)
    assert rows_in(tmp_path, target.drop) == {}
    gone = {hash_of(key, unit.values) for unit in units}
    stay = [each for each in before if hash_of(key, each.values) not in gone]
    assert [unit.values for unit in target.units()] == [each.values for each in stay]
    assert [unit.name for unit in work.target_of(tmp_path, copy).units()] == [
        each.name for each in stay
    ]
    assert work.rows_left(tmp_path, plan) == 0
    work.scan(tmp_path, plan, Search(texts))
    assert plan.stands_still == plan.stands_since_rows_stay == plan.removed == []
    # What comes again loses them once more.
    write(tmp_path / "again", name)
    drop = tmp_path / DROPS / name
    tombstones_of(drop).unlink()
    (tmp_path / "again" / DROPS / name).rename(drop if drop.is_file() else drop / "again")
    assert "were taken out of it" in work.taken_out_again(tmp_path, drop)
    assert not gone & {hash_of(key, unit.values) for unit in target.units()}


def test_a_hash_is_of_all_values_and_of_the_key_and_of_no_order() -> None:
    row = {"a": 10**30, "b": "\ud800", "c": [1.5, None, {"d": True}]}
    made = hash_of(b"key", row)
    assert made == hash_of(b"key", dict(reversed(row.items())))
    others = [row | {"a": 10**30 + 1}, row | {"b": "\ud801"}, row | {"e": None}, {"a": 1}]
    assert len({made, hash_of(b"other", row), *(hash_of(b"key", each) for each in others)}) == 6
    assert hash_of(b"key", {"a": 1, "b": 2}) == hash_of(b"key", {"b": 2, "a": 1})

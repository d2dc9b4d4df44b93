"""Notes on datasets: equal tasks and repeated rows are named, with a number and examples."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gristmill.contract import Summary, Violation, counts_of
from gristmill.puzzles.builders.arc import build_arc
from gristmill.puzzles.builders.maze import build_maze
from gristmill.puzzles.builders.sudoku import build_sudoku
from gristmill.puzzles.config import ArcConfig, MazeConfig, SudokuConfig
from gristmill.puzzles.format.names import SOURCES
from gristmill.puzzles.laws.contract import puzzle_notes, rows_left_out
from tests.paths import REAL_DATA
from tests.puzzles import arc_tasks
from tests.puzzles import sudoku as sudokus


def noted(out: Path, summary: Summary) -> list[Violation]:
    record = SimpleNamespace(counts=counts_of(summary))
    return [*puzzle_notes(out), *rows_left_out(cast(Any, record), out)]


def test_equal_tasks_are_counted_and_named(tmp_path: Path) -> None:
    task = arc_tasks.task(3)
    turned = {"test": task["test"], "train": task["train"][::-1]}
    other = {"test": task["test"], "train": task["train"][:1]}
    tasks = {"training/a": task, "training/b": turned, "training/c": other}
    source = arc_tasks.write(tmp_path / "arc", {**tasks, "evaluation/d": arc_tasks.task(4)})
    summary = build_arc(source, tmp_path / "out", ArcConfig(num_aug=1))
    assert (summary.tasks, summary.equal_tasks) == (4, 1)
    found = "1 tasks have the pairs of an earlier one: arc/training/b.json = arc/training/a.json"
    assert noted(tmp_path / "out", summary) == [Violation("equal_tasks", SOURCES, found)]


def test_without_equal_tasks_nothing_is_noted(tmp_path: Path) -> None:
    source = arc_tasks.source(tmp_path / "arc")
    summary = build_arc(source, tmp_path / "out", ArcConfig(num_aug=2))
    assert summary.equal_tasks == 0 and summary.duplicates_removed >= 0
    assert noted(tmp_path / "out", summary) == []
    (tmp_path / "out" / SOURCES).write_text("{}")
    assert [note.law for note in puzzle_notes(tmp_path / "out")] == ["sources"]


def test_the_one_equal_task_of_the_real_arc_is_named(tmp_path: Path) -> None:
    source = tmp_path / "arc_agi"
    for name in ("training/40853293.json", "evaluation/070dd51e.json"):
        real = REAL_DATA / "puzzles" / "arc" / name
        if not real.exists():
            pytest.skip(f"no real data at {real} (GRISTMILL_REAL_DATA)")
        (source / name).parent.mkdir(parents=True)
        (source / name).write_bytes(real.read_bytes())
    summary = build_arc(source, tmp_path / "out", ArcConfig(num_aug=1))
    assert (summary.equal_tasks, summary.known_leaks) == (1, 1)
    (note,) = noted(tmp_path / "out", summary)
    assert "training/40853293.json = arc_agi/evaluation/070dd51e.json" in note.found


def test_repeated_rows_are_counted_and_the_first_of_each_file_is_named(tmp_path: Path) -> None:
    pairs = sudokus.pairs(0, 6)
    train, test = pairs[:3], pairs[3:]
    source = sudokus.write_drop(
        tmp_path / "drop", [*train, train[2], train[0], train[0]], [*test, test[1]]
    )
    summary = build_sudoku(source, tmp_path / "out", SudokuConfig())
    assert summary.duplicates_removed == 4
    assert summary.first_repeats == {"drop/test.csv": 5, "drop/train.csv": 5}
    found = (
        "4 rows repeat an earlier one of their split, and are left out; the first of each file:"
        " drop/train.csv line 5, drop/test.csv line 5"
    )
    assert noted(tmp_path / "out", summary) == [Violation("repeated_puzzles", SOURCES, found)]


def test_ambiguous_rows_that_are_dropped_are_counted_and_named(tmp_path: Path) -> None:
    pairs = sudokus.pairs(0, 6)
    solution = pairs[0][1]
    blank = ("." * 40 + solution[40:], solution)
    source = sudokus.write_drop(tmp_path / "drop", [*pairs[:3], blank], pairs[3:])
    summary = build_sudoku(source, tmp_path / "out", SudokuConfig(unique="drop"))
    found = (
        "1 rows have another number of solutions than one, and are left out; the first of each"
        " file: drop/train.csv line 5"
    )
    assert noted(tmp_path / "out", summary) == [Violation("ambiguous_puzzles", SOURCES, found)]


def test_the_first_repeat_of_a_bank_is_that_of_both_splits(tmp_path: Path) -> None:
    lines = [question for question, _ in sudokus.pairs(0, 12)]
    (tmp_path / "bank").mkdir()
    for shift in range(6):  # the first repeat is one of either split
        again = [*lines[shift:], *lines[:shift]]
        (tmp_path / "bank" / "b.txt").write_text("\n".join([*lines, *again]))
        out = tmp_path / f"out{shift}"
        summary = build_sudoku(tmp_path / "bank", out, SudokuConfig(test_share=0.5))
        assert summary.duplicates_removed == 12
        assert summary.first_repeats == {"bank/b.txt": 13}
    assert min(summary.groups.values()) > 0


def test_repeated_mazes_are_named_up_to_symmetry(tmp_path: Path) -> None:
    from tests.puzzles.builders.test_maze import drop, mazes

    first = mazes(3, 1)
    source = drop(tmp_path / "drop", [*first, first[1], first[0]], mazes(2, 2))
    summary = build_maze(source, tmp_path / "out", MazeConfig())
    assert (summary.duplicates_removed, summary.first_repeats) == (2, {"drop/train.csv": 5})
    (note,) = noted(tmp_path / "out", summary)
    assert note.found.startswith("2 rows repeat") and "drop/train.csv line 5" in note.found
    assert json.loads((tmp_path / "out" / SOURCES).read_text())["kind"] == "maze"

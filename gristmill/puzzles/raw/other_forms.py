"""Forms of puzzles that are published and not read: by what each is known, and what to do with it.

Source: `docs/formats/puzzles.md#forms-that-are-not-read`.
"""

from __future__ import annotations

import re
from typing import Any, Final

_TASK: Final = "a file FOLDER/TASK.json such as training/00d62c1b.json"
_KAGGLE: Final = (
    "is of Kaggle's form of ARC (challenges.json and solutions.json), which is not read: write each"
    f" task of the challenges, with the outputs of the solutions in its test pairs, as {_TASK}"
)
_PAIRS: Final = (
    "is of RE-ARC's form (a list of pairs for each task, and metadata.json), which is not read:"
    f' write tasks of at most 100 pairs, {{"train": [...], "test": [...]}}, each as {_TASK}'
)
_ONE_LINE: Final = (
    "is of 1D-ARC's form, whose names have '_', with which ids of augmentations are made: rename"
    " the files, such as 1d-fill-0.json"
)
_BUILT: Final = (
    "is of a dataset of the HRM project that is built already, which is no drop: open its folder"
    " with PuzzleDataset"
)
_COLLECTION: Final = re.compile(r"[-_](challenges|solutions)$|^sample_submission$")


def json_form(name: str) -> str | None:
    """Which form a JSON file has that is no task, and what to do; None for no known one."""
    stem = name.lower().removesuffix(".json")
    if _COLLECTION.search(stem):
        return _KAGGLE
    return {"metadata": _PAIRS, "identifiers": _BUILT}.get(stem)


def id_form(base: str) -> str | None:
    """Which form has tasks of such an id, and what to do; None for none known."""
    return _ONE_LINE if base.startswith("1d_") else None


def task_form(value: Any) -> str | None:
    """Which form that is not read a JSON value has, and what to do; None for no such form."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "input" in value[0]:
        return _PAIRS
    if isinstance(value, dict) and value:
        if "pad_id" in value:
            return _BUILT
        first = next(iter(value.values()))
        is_task = isinstance(first, dict) and "test" in first
        # The solutions: the grids of all test pairs of a task.
        is_solution = isinstance(first, list) and bool(first) and isinstance(first[0], list)
        if not {"train", "test"} & set(value) and (is_task or is_solution):
            return _KAGGLE
    return None


def csv_form(columns: tuple[str, ...]) -> str | None:
    """Which form that is not read a CSV file has by its header, and what to do; None for none."""
    for pair in (("quizzes", "solutions"), ("puzzle", "solution")):
        if set(pair) <= set(columns):
            places = ",".join(str(columns.index(name) + 1) for name in pair)
            return (
                f"is of Kaggle's form of Sudokus ({','.join(columns)}), which is not read: make a"
                f" bank of it, with a line `puzzle solution` each: `tail -n +2 sudoku.csv | cut -d,"
                f" -f{places} | tr , ' ' > sudoku.txt`"
            )
    return None

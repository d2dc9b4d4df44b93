"""Forms of puzzles that are published and not read: by what each is known, and what to do with it.

Source: `docs/formats/puzzles.md#forms-that-are-not-read`.
"""

from __future__ import annotations

from typing import Any, Final

_TASK: Final = "a file FOLDER/TASK.json such as training/00d62c1b.json"
_COLLECTED: Final = (
    "holds several tasks: Kaggle's form of ARC is two files in the source itself, named"
    " NAME_SUBSET_challenges.json and NAME_SUBSET_solutions.json"
)
_PAIRS: Final = (
    "is of RE-ARC's form (a list of pairs for each task, and metadata.json), which is not read:"
    f' write tasks of at most 100 pairs, {{"train": [...], "test": [...]}}, each as {_TASK}'
)
_BUILT: Final = (
    "is of a dataset of the HRM project that is built already, which is no drop: open its folder"
    " with PuzzleDataset"
)


def json_form(name: str) -> str | None:
    """Which form a JSON file has that is no task, and what to do; None for no known one."""
    stem = name.lower().removesuffix(".json")
    return {"metadata": _PAIRS, "identifiers": _BUILT, "test_puzzles": _BUILT}.get(stem)


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
            return _COLLECTED
    return None

"""The folder `trm/` of an ARC dataset: the same arrays, and the names and tasks that TRM scores by.

HRM and TRM split the names in `identifiers.json` at other marks; one that is misread is no error.
Source: `docs/formats/puzzles.md#arc-for-trm`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gristmill.contract import FileNote
from gristmill.puzzles.builders.arc_leaks import Selection
from gristmill.puzzles.domains.arc_augment import TRM_MARK
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import read_identifiers
from gristmill.puzzles.raw.arc_tasks import ArcTask


def write_trm(
    out: Path, selection: Selection, files: Mapping[str, FileNote]
) -> dict[str, FileNote]:
    """Write `trm/` into a dataset that is staged.

    selection: the tasks of the dataset. files: what is noted of its arrays.

    Returns the notes of the arrays in `trm/`, which are hard links where the file system has them.
    """
    folder = out / names.TRM
    notes = {}
    for split in names.SPLITS:
        (folder / split).mkdir(parents=True)
        for path in sorted((out / split).iterdir()):
            name = f"{split}/{path.name}"
            _link(path, folder / name)
            if name in files:
                notes[f"{names.TRM}/{name}"] = files[name]
    tasks = {task.base: task.task for task in selection.tasks}
    listed = [trm_name(name, tasks) for name in read_identifiers(out / names.IDENTIFIERS)]
    (folder / names.IDENTIFIERS).write_text(json.dumps(listed))
    (folder / names.TEST_PUZZLES).write_text(json.dumps(dict(_test_puzzles(selection))))
    return notes


def trm_name(name: str, tasks: Mapping[str, str]) -> str:
    """A name in the form of TRM, `task|||t1|||0123456789`. tasks: id in its source of each base."""
    if name == names.BLANK:
        return name
    base, *augmentation = name.split("_")
    return TRM_MARK.join([tasks[base], *augmentation])


def _test_puzzles(selection: Selection) -> Iterator[tuple[str, Any]]:
    """Id and pairs of each task of the test split, without test pairs that are left out."""
    for task in selection.tasks:
        tested = selection.numbers(task, "test")
        if tested:
            shown = [number for number, is_test in enumerate(task.is_test) if not is_test]
            yield task.task, {"train": _pairs(task, shown), "test": _pairs(task, tested)}


def _pairs(task: ArcTask, numbers: Any) -> list[dict[str, Any]]:
    return [
        {"input": task.pairs[number][0].tolist(), "output": task.pairs[number][1].tolist()}
        for number in numbers
    ]


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # as on exFAT
        shutil.copyfile(source, target)

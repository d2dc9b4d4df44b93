"""ARC tasks: JSON files in the sub-folders of a source, read within limits and checked.

Source: `docs/formats/puzzles.md#arc`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.contract import BadInput
from gristmill.inbox.sample_mark import not_samples
from gristmill.puzzles.domains.arc_augment import MOST_BASE, is_base
from gristmill.puzzles.domains.arc_grid import COLOURS, SIDE, Grid
from gristmill.puzzles.raw.near_names import check_names, unpack_hint
from gristmill.puzzles.raw.other_forms import id_form, json_form, task_form
from gristmill.puzzles.raw.texts import BYTE_ORDER_MARK, check_encoding
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file
from gristmill.untrusted.json_text import check_nesting
from gristmill.untrusted.limits import Limits
from gristmill.untrusted.walk import Entry, list_files

EVALUATION: Final = "evaluation"
"""The sub-folder whose `test` pairs are the test split."""
MOST_PAIRS: Final = 100
"""Pairs of one task."""
_LIMITS: Final = Limits(bytes=16 << 20, depth=8, values=1 << 18, digits=20)
_ENDING: Final = ".json"
_LISTS: Final = ("train", "test")
_NAME: Final = "name"
_SHOWN: Final = 80
_OTHERS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_COLOURS: Final = frozenset(range(COLOURS))


@dataclass(frozen=True)
class ArcTask:
    """One task.

    base: its id, without `_`.
    source: folder of the source that it is in. file: path of the file in the source.
    sha256: of the file's bytes, in hex.
    pairs: input and output of every pair, uint8 [height, width], in the order of the file.
    is_test: of every pair whether it is in the list `test`.
    """

    base: str
    source: Path
    file: str
    sha256: str
    pairs: tuple[tuple[Grid, Grid], ...]
    is_test: tuple[bool, ...]

    @property
    def path(self) -> Path:
        """The file."""
        return self.source / self.file

    @property
    def is_evaluation(self) -> bool:
        """Whether its `test` pairs belong to the test split."""
        return self.file.startswith(f"{EVALUATION}/")

    def numbers(self, split: str) -> tuple[int, ...]:
        """The numbers of its pairs that belong to a split, `train` or `test`."""
        return tuple(
            number
            for number, is_test in enumerate(self.is_test)
            if (is_test and self.is_evaluation) == (split == "test")
        )


def read_tasks(source: Path, links: LinkRule = REFUSE_LINKS) -> list[ArcTask]:
    """Read the tasks of a source: `*.json` of each of its sub-folders, in the order of their paths.

    Raises BadInput for a file that cannot be opened by the rules of drops, and as `task_entries`
    and `parse_task`.
    """
    return [read_task(source, entry.name, links) for entry in task_entries(source, links)]


def read_task(source: Path, name: str, links: LinkRule = REFUSE_LINKS) -> ArcTask:
    """Read one task of a source. name: path of its file in the source. Raises as `read_tasks`."""
    octets = read_file(source / name, root=source, most=_LIMITS.bytes, links=links)
    return parse_task(octets, source, name)


def task_entries(source: Path, links: LinkRule = REFUSE_LINKS) -> list[Entry]:
    """The files of the tasks of a source, sorted by their paths.

    Files with other endings do not count, nor do names that begin with a dot. Raises BadInput for a
    source without tasks, a `.json` file that is not directly in a sub-folder, a packed one, one of
    a form that is not read, and `Evaluation` in capitals.
    """
    entries = sorted(list_files(source, root=source, links=links), key=lambda each: each.name)
    check_names(source, [entry.name for entry in entries], _is_task)
    tasks = list(_tasks(source, entries))
    left = not_samples(source, (task.name for task in tasks))
    tasks = [task for task in tasks if task.name not in left]
    if not tasks:
        raise BadInput(
            source,
            "holds no ARC task: they are in FOLDER/TASK.json, such as training/00d62c1b.json"
            + unpack_hint(entry.name for entry in entries),
        )
    return tasks


def _is_task(name: str) -> bool:
    return name.lower().endswith(_ENDING)


def _tasks(source: Path, entries: Sequence[Entry]) -> Iterator[Entry]:
    for entry in entries:
        name = entry.name
        if entry.refusal and "/" not in name and not name.startswith("."):
            raise BadInput(source / name, entry.refusal)  # a link may lead to a folder of tasks
        if not _is_task(name) or any(part.startswith(".") for part in name.split("/")):
            continue
        if name.count("/") != 1:
            raise BadInput(
                source / name,
                json_form(name)
                or "is not in a sub-folder of the source, where tasks are: name the folder two"
                " levels above the files as source, such as ARC-AGI/data or ConceptARC/corpus",
            )
        if entry.refusal:
            raise BadInput(source / name, entry.refusal)
        folder = name.partition("/")[0]
        if folder != EVALUATION and folder.lower() == EVALUATION:
            raise BadInput(
                source / folder,
                f"is not named {EVALUATION}, so that its test pairs would be for training: rename"
                " it",
            )
        yield entry


def parse_task(octets: bytes, source: Path, name: str) -> ArcTask:
    """Parse the file of a task. Raises BadInput, which names file, pair and rule."""
    path = source / name
    task = _object(octets, path)
    for key in task:
        if key not in (*_LISTS, _NAME):
            raise BadInput(path, f"has the key {_shown(key)}: a task has train, test and name only")
    base = _base(task, path)
    pairs: list[tuple[Grid, Grid]] = []
    is_test: list[bool] = []
    for key in [key for key in task if key in _LISTS]:
        if not isinstance(task[key], list) or not task[key]:
            raise BadInput(path, f"{key} must be a list of at least one pair")
        for number, pair in enumerate(task[key]):
            pairs.append(_pair(pair, path, f"{key} pair {number}"))
            is_test.append(key == "test")
            if len(pairs) > MOST_PAIRS:
                raise BadInput(path, f"has more than {MOST_PAIRS} pairs")
    if missing := [key for key in _LISTS if key not in task]:
        raise BadInput(path, f"lacks the key {missing[0]}: a task has train and test")
    sha256 = hashlib.sha256(octets).hexdigest()
    return ArcTask(base, source, name, sha256, tuple(pairs), tuple(is_test))


def _object(octets: bytes, path: Path) -> dict[str, Any]:
    def members(found: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(found)
        if len(read) != len(found):
            raise BadInput(path, "has a key twice in one object")
        return read

    def constant(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    check_encoding(octets, path)
    text = octets.removeprefix(BYTE_ORDER_MARK)
    if not text.strip():
        raise BadInput(path, "is empty: get the file again, or remove it")
    if len(text) > _LIMITS.values or not _is_shallow(text):
        check_nesting(text, path, _LIMITS)
    try:
        task = json.loads(text.decode("utf-8"), object_pairs_hook=members, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"not JSON: {error}") from error
    if form := task_form(task):
        raise BadInput(path, form)
    if not isinstance(task, dict):
        raise BadInput(path, "must hold an object with train and test")
    return task


def _is_shallow(octets: bytes) -> bool:
    """Whether brackets and quotes alone say that a text is not nested too deep.

    `check_nesting` looks at every bracket, of which a task has hundreds. Without backslashes, every
    second quote ends a string, so that no bracket in a string can cancel one outside of it.
    """
    if b"\\" in octets:
        return False
    marks = octets.translate(None, _OTHERS)
    for _ in range(_LIMITS.depth):
        marks = marks.replace(b'""', b"").replace(b"[]", b"").replace(b"{}", b"")
    return not marks


def _base(task: dict[str, Any], path: Path) -> str:
    base = task.get(_NAME, path.stem)
    if not isinstance(base, str) or not 0 < len(base) <= MOST_BASE or not base.isprintable():
        raise BadInput(path, f"name {_shown(base)} is no text of 1 to {MOST_BASE} letters")
    if not is_base(base):
        raise BadInput(
            path,
            id_form(base)
            or f"the id {_shown(base)} has '_' or begins with '<': ids of augmentations are made of"
            " the id, '_' and their parameters; rename the file, or its key name",
        )
    return base


def _pair(pair: Any, path: Path, where: str) -> tuple[Grid, Grid]:
    if not isinstance(pair, dict):
        raise BadInput(path, f"{where} must be an object with input and output only")
    for key in ("input", "output"):
        if key not in pair:
            rule = f"{where} has no {key}: every pair needs one, those of test, too"
            hidden = ", which hidden tests of Kaggle do not have: leave such tasks out"
            raise BadInput(path, rule + (hidden if where.startswith("test") else ""))
    if more := [key for key in pair if key not in ("input", "output")]:
        raise BadInput(path, f"{where} has the key {_shown(more[0])}: it has input and output only")
    before, after = (_grid(pair[key], path, f"{where}, {key}") for key in ("input", "output"))
    return before, after


def _grid(rows: Any, path: Path, where: str) -> Grid:
    if not isinstance(rows, list) or not 0 < len(rows) <= SIDE:
        raise BadInput(path, f"{where}: a grid is a list of 1 to {SIDE} rows")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or not 0 < len(row) <= SIDE:
            raise BadInput(path, f"{where}, row {number}: a row is a list of 1 to {SIDE} colours")
        if len(row) != len(rows[0]):
            raise BadInput(
                path, f"{where}, row {number}: has {len(row)} cells, row 0 has {len(rows[0])}"
            )
    # The type too: True equals 1, and 1.0 does.
    if set(map(type, chain.from_iterable(rows))) != {int} or not _COLOURS.issuperset(
        chain.from_iterable(rows)
    ):
        number, wrong = next(
            (number, cell)
            for number, row in enumerate(rows)
            for cell in row
            if type(cell) is not int or cell not in _COLOURS
        )
        raise BadInput(
            path, f"{where}, row {number}: {_shown(wrong)} is no colour: expected 0 to 9"
        )
    return np.frombuffer(bytes(chain.from_iterable(rows)), np.uint8).reshape(len(rows), -1)


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN]

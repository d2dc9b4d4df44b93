"""ARC tasks in folders of a source, or as Kaggle and TRM hold them, read and checked.

Kaggle's files have the challenges of a subset in one file, and their outputs in another one.
Source: docs/formats/puzzles.md#arc
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill.contract import BadInput
from gristmill.inbox.marks import not_samples
from gristmill.puzzles.domains.arc_grid import COLOURS, MOST_BASE, SIDE, Grid, base_of, is_task_id
from gristmill.puzzles.raw.file_forms import (
    BYTE_ORDER_MARK,
    check_encoding,
    check_names,
    unpack_hint,
)
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file, read_file
from gristmill.untrusted.json_text import check_nesting
from gristmill.untrusted.limits import Limits
from gristmill.untrusted.lines import reads
from gristmill.untrusted.walk import Entry, list_files

_FILE: Final = re.compile(r"((?:.*[-_])?([^-_]+))[-_](challenges|solutions)\.json", re.IGNORECASE)
_HIDDEN: Final = "test"
"""The subset whose solutions Kaggle keeps to itself."""
_MOST_TASKS: Final = 1 << 20
_MOST_BYTES: Final = 1 << 28


class Subset(NamedTuple):
    """A subset of tasks in two files. name: as `training`. challenges, solutions: their names."""

    name: str
    challenges: str
    solutions: str


def is_collection(name: str) -> bool:
    """Whether a file has the challenges or the solutions of a subset, by its path in the source."""
    return "/" not in name and not name.startswith(".") and _FILE.fullmatch(name) is not None


def part_of(name: str) -> str:
    """The folder, or the subset, that a file of tasks is in. name: its path in the source."""
    match = _FILE.fullmatch(name) if is_collection(name) else None
    return match[2] if match else name.partition("/")[0]


def pair_of(pair: Any) -> Any:
    """A pair that is a list, `[input, output]`, as an object; any other value as it is."""
    is_list = isinstance(pair, list) and len(pair) == 2
    return {"input": pair[0], "output": pair[1]} if is_list else pair


def subsets_of(source: Path, names: Iterable[str], wanted: Collection[str] = ()) -> list[Subset]:
    """The subsets in a source, sorted; `test` without solutions by name alone. Raises BadInput."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name in sorted(names):
        if is_collection(name) and (match := _FILE.fullmatch(name)):
            found.setdefault((match[1], match[2]), {})[match[3].lower()] = name
    listed = []
    for (stem, subset), files in found.items():
        if wanted and subset not in wanted:
            continue
        if not wanted and subset == _HIDDEN and "solutions" not in files:
            continue
        for role in ("challenges", "solutions"):
            if role not in files:
                raise BadInput(
                    source / f"{stem}_{role}.json",
                    f"is missing beside {next(iter(files.values()))}: bring it, or name the other"
                    " subsets in the recipe, as [settings] subsets = ['training']",
                )
        listed.append(Subset(subset, files["challenges"], files["solutions"]))
    return listed


def read_subset(
    source: Path, subset: Subset, limits: Limits, links: LinkRule
) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The tasks of a subset: id and task, with the outputs of its test pairs; and a sha256."""
    solutions, _ = _members(source / subset.solutions, source, limits, links)
    tasks, sha256 = _members(source / subset.challenges, source, limits, links)
    path = source / subset.solutions
    if (missing := next((task for task in tasks if task not in solutions), None)) is not None:
        raise BadInput(path, f"has no solution of the task {missing!r:.80}: bring the whole file")
    if (more := next((task for task in solutions if task not in tasks), None)) is not None:
        raise BadInput(path, f"has the task {more!r:.80}, which {subset.challenges} lacks")
    places = (source / subset.challenges, path)
    solved = [
        (task, _solved(value, solutions[task], *places, task)) for task, value in tasks.items()
    ]
    return solved, sha256


def _members(
    path: Path, source: Path, limits: Limits, links: LinkRule
) -> tuple[dict[str, Any], str]:
    """The members of the object in a file, and the sha256 of the file."""
    from gristmill.untrusted.json_text import members  # `_object` has another one

    digest = hashlib.sha256()
    found: dict[str, Any] = {}

    def seen(parts: Iterable[bytes]) -> Iterator[bytes]:
        for number, part in enumerate(parts):
            digest.update(part)
            if not number:
                check_encoding(part, path)
            yield part if number else part.removeprefix(BYTE_ORDER_MARK)

    limits = replace(limits, rows=_MOST_TASKS, line_bytes=limits.bytes)
    with open_file(path, root=source, links=links, buffering=0) as file:
        if file.seek(0, 2) > _MOST_BYTES:
            raise BadInput(path, f"has more than {_MOST_BYTES:,} bytes")
        file.seek(0)

        def made(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
            read = dict(pairs)
            if len(read) != len(pairs):
                raise BadInput(path, "has a key twice in one object")
            return read

        gone = links.forgotten.get(path, ())
        for number, (task, value) in enumerate(members(seen(reads(file)), path, limits, made), 1):
            if number in gone:
                continue
            if not isinstance(task, str):
                raise BadInput(path, "must hold an object: the id of each task, and the task")
            if task in found:
                raise BadInput(path, f"has the task {task!r:.80} twice")
            found[task] = value
    return found, digest.hexdigest()


def _solved(task: Any, outputs: Any, challenges: Path, path: Path, name: str) -> dict[str, Any]:
    """A task with the outputs of its test pairs. path: of the solutions."""
    if not isinstance(task, dict):
        raise BadInput(challenges, f"task {name}: must be an object with train and test")
    tested = task.get("test")
    if not isinstance(tested, list):
        return task  # the parser of tasks refuses it
    if not isinstance(outputs, list) or len(outputs) != len(tested):
        count = len(outputs) if isinstance(outputs, list) else "no list of"
        raise BadInput(path, f"task {name}: has {count} outputs for {len(tested)} test pairs")
    pairs = []
    for number, (pair, output) in enumerate(zip(map(pair_of, tested), outputs, strict=True)):
        if isinstance(pair, dict) and pair.get("output", output) != output:
            raise BadInput(path, f"task {name}: test pair {number} has another output itself")
        pairs.append({**pair, "output": output} if isinstance(pair, dict) else pair)
    return {**task, "test": pairs}


EVALUATION: Final = "evaluation"
"""The sub-folder, or subset, whose `test` pairs are the test split where nothing else is set."""
MOST_PAIRS: Final = 100
"""Pairs of one task."""
_LIMITS: Final = Limits(bytes=16 << 20, depth=8, values=1 << 18, digits=20)
_ENDING: Final = ".json"
_LISTS: Final = ("train", "test")
_NO_TASKS: Final = frozenset({"sample_submission.json"})
"""Files beside Kaggle's that hold no task."""
_NAME: Final = "name"
_SHOWN: Final = 80
_OTHERS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_COLOURS: Final = frozenset(range(COLOURS))


class TooLarge(BadInput):
    """A task with a grid that is too large, as others in its folder may be."""


@dataclass(frozen=True)
class ArcTask:
    """One task: ids, file, and all pairs, uint8 [height, width], in the order of the file."""

    base: str
    task: str
    source: Path
    file: str
    sha256: str
    pairs: tuple[tuple[Grid, Grid], ...]
    is_test: tuple[bool, ...]
    is_evaluation: bool
    unread: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file."""
        return self.source / self.file

    def numbers(self, split: str) -> tuple[int, ...]:
        """The numbers of its pairs that belong to a split, `train` or `test`."""
        return tuple(
            number
            for number, is_test in enumerate(self.is_test)
            if (is_test and self.is_evaluation) == (split == "test")
        )


@dataclass(frozen=True)
class Parts:
    """Which folders or subsets of a source are read, and whose test pairs are tests."""

    evaluation: Collection[str] = (EVALUATION,)
    subsets: Collection[str] = ()

    def has(self, folder: str) -> bool:
        """Whether a folder is read."""
        return not self.subsets or folder in self.subsets


ALL: Final = Parts()


def read_tasks(source: Path, links: LinkRule = REFUSE_LINKS, parts: Parts = ALL) -> list[ArcTask]:
    """Read the tasks of a source: folders in the order of paths, then subsets. Raises BadInput."""
    entries, collected = task_files(source, links, parts)
    kept = [entry.name for entry in entries if source / entry.name not in links.forgotten]
    tasks = [read_task(source, name, links, parts) for name in kept]
    for subset in collected:
        found, sha256 = read_subset(source, subset, _LIMITS, links)
        path, is_evaluation = source / subset.challenges, subset.name in parts.evaluation
        for task, value in found:
            checked = _task_id(task, path)
            pairs = _pairs(value, path, f"task {task}: ")
            place = (source, subset.challenges, sha256)
            tasks.append(ArcTask(base_of(task), checked, *place, *pairs, is_evaluation))
    return tasks


def read_task(
    source: Path, name: str, links: LinkRule = REFUSE_LINKS, parts: Parts = ALL
) -> ArcTask:
    """Read one task of a source. name: path of its file in the source. Raises as `read_tasks`."""
    octets = read_file(source / name, root=source, most=_LIMITS.bytes, links=links)
    return parse_task(octets, source, name, parts)


def task_files(
    source: Path, links: LinkRule = REFUSE_LINKS, parts: Parts = ALL
) -> tuple[list[Entry], list[Subset]]:
    """The files of the tasks of a source, and its subsets; BadInput names one passed over."""
    entries = sorted(list_files(source, root=source, links=links), key=lambda each: each.name)
    check_names(source, [entry.name for entry in entries], _is_task)
    tasks = list(_tasks(source, entries, parts))
    collected = subsets_of(source, (entry.name for entry in entries), parts.subsets)
    others = [name for each in collected for name in each[1:]]
    left = not_samples(source, [*(task.name for task in tasks), *others])
    tasks = [task for task in tasks if task.name not in left]
    if not tasks and not collected:
        raise BadInput(
            source,
            f"holds no ARC task{_chosen(parts.subsets)}: they are in FOLDER/TASK.json, such as"
            " training/00d62c1b.json, or in NAME_SUBSET_challenges.json with"
            " NAME_SUBSET_solutions.json" + unpack_hint(entry.name for entry in entries),
        )
    return tasks, collected


def _chosen(subsets: Collection[str]) -> str:
    return f" in `{'`, `'.join(subsets)}`, which subsets names" if subsets else ""


def _is_task(name: str) -> bool:
    return name.lower().endswith(_ENDING)


def _tasks(source: Path, entries: Sequence[Entry], parts: Parts) -> Iterator[Entry]:
    for entry in entries:
        name = entry.name
        if entry.refusal and "/" not in name and not name.startswith("."):
            raise BadInput(source / name, entry.refusal)  # a link may lead to a folder of tasks
        if not _is_task(name) or any(part.startswith(".") for part in name.split("/")):
            continue
        if is_collection(name) or name.lower() in _NO_TASKS:
            continue
        if name.count("/") != 1:
            raise BadInput(
                source / name,
                json_form(name)
                or "is not in a sub-folder of the source, where tasks are: name the folder two"
                " levels above the files as source, such as ARC-AGI/data or ConceptARC/corpus,"
                " or remove it if it is no task",
            )
        if entry.refusal:
            raise BadInput(source / name, entry.refusal)
        folder = name.partition("/")[0]
        is_known = folder == EVALUATION or folder in parts.evaluation
        if folder.lower() == EVALUATION and not is_known:
            raise BadInput(
                source / folder,
                f"is not named {EVALUATION}, so that its test pairs would be for training: rename"
                " it",
            )
        if parts.has(folder):
            yield entry


def parse_task(octets: bytes, source: Path, name: str, parts: Parts = ALL) -> ArcTask:
    """Parse the file of a task. Raises BadInput, which names file, pair and rule."""
    path = source / name
    value = _object(octets, path)
    task = _task_id(value.get(_NAME, path.stem), path)
    place = (source, name, hashlib.sha256(octets).hexdigest())
    is_evaluation = part_of(name) in parts.evaluation
    unread = tuple(key for key in value if key not in (*_LISTS, _NAME))
    return ArcTask(base_of(task), task, *place, *_pairs(value, path), is_evaluation, unread)


def _pairs(
    task: dict[str, Any], path: Path, of_task: str = ""
) -> tuple[tuple[tuple[Grid, Grid], ...], tuple[bool, ...]]:
    """The pairs of a task, and which of them are in the list `test`. of_task: for messages."""
    for key, value in task.items():
        if key not in (*_LISTS, _NAME) and isinstance(value, list | dict):
            rule = f"has the key {_shown(key)}: the lists of pairs of a task are train and test"
            raise BadInput(path, f"{of_task}{rule}; rename the key, or remove it")
    pairs: list[tuple[Grid, Grid]] = []
    is_test: list[bool] = []
    for key in [key for key in task if key in _LISTS]:
        if not isinstance(task[key], list) or not task[key]:
            raise BadInput(path, f"{of_task}{key} must be a list of at least one pair{_MEND}")
        for number, pair in enumerate(task[key]):
            pairs.append(_pair(pair, path, f"{of_task}{key} pair {number}"))
            is_test.append(key == "test")
            if len(pairs) > MOST_PAIRS:
                raise BadInput(path, f"{of_task}has more than {MOST_PAIRS} pairs{_MEND}")
    if missing := [key for key in _LISTS if key not in task]:
        rule = f"{of_task}lacks the key {missing[0]}, and a task has train and test{_MEND}"
        raise BadInput(path, rule)
    return tuple(pairs), tuple(is_test)


def _object(octets: bytes, path: Path) -> dict[str, Any]:
    def members(found: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(found)
        if len(read) != len(found):
            raise BadInput(path, f"has a key twice in one object{_MEND}")
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
        raise BadInput(path, f"not JSON: {error}{_MEND}") from error
    if form := task_form(task):
        raise BadInput(path, form)
    if not isinstance(task, dict):
        raise BadInput(path, f"must hold an object with train and test{_MEND}")
    return task


def _is_shallow(octets: bytes) -> bool:
    """Whether brackets and quotes alone say that a text is not nested too deep."""
    if b"\\" in octets:
        return False
    marks = octets.translate(None, _OTHERS)
    for _ in range(_LIMITS.depth):
        marks = marks.replace(b'""', b"").replace(b"[]", b"").replace(b"{}", b"")
    return not marks


def _task_id(task: object, path: Path) -> str:
    if not isinstance(task, str) or not 0 < len(task) <= MOST_BASE or not task.isprintable():
        rule = f"name {_shown(task)} is no text of 1 to {MOST_BASE} letters"
        raise BadInput(path, f"{rule}: rename the task, or remove its key name")
    if not is_task_id(task):
        raise BadInput(
            path,
            f"the id {_shown(task)} has '|||', ends with '|' or begins with '<': TRM makes ids of"
            " augmentations of the id, '|||' and their parameters; rename the file, or its key"
            " name",
        )
    return task


def _pair(pair: Any, path: Path, where: str) -> tuple[Grid, Grid]:
    pair = pair_of(pair)
    if not isinstance(pair, dict):
        raise BadInput(path, f"{where} must be an object with input and output only{_MEND}")
    for key in ("input", "output"):
        if key not in pair:
            rule = f"{where} has no {key}: every pair needs one, those of test, too"
            hidden = (
                ", which hidden tests of Kaggle do not have: leave such tasks out, or their folder"
                " by [settings] subsets"
            )
            raise BadInput(path, rule + (hidden if "test pair" in where else ""))
    if more := [key for key in pair if key not in ("input", "output")]:
        rule = f"{where} has the key {_shown(more[0])}: it has input and output only"
        raise BadInput(path, f"{rule}; remove the key")
    before, after = (_grid(pair[key], path, f"{where}, {key}") for key in ("input", "output"))
    return before, after


def _grid(rows: Any, path: Path, where: str) -> Grid:
    if not isinstance(rows, list) or not 0 < len(rows) <= SIDE:
        raise _size(path, f"{where}: a grid is a list of 1 to {SIDE} rows", rows)
    for number, row in enumerate(rows):
        if not isinstance(row, list) or not 0 < len(row) <= SIDE:
            rule = f"a row is a list of 1 to {SIDE} colours"
            raise _size(path, f"{where}, row {number}: {rule}", row)
        if len(row) != len(rows[0]):
            rule = f"has {len(row)} cells, row 0 has {len(rows[0])}{_MEND}"
            raise BadInput(path, f"{where}, row {number}: {rule}")
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
        rule = f"{_shown(wrong)} is not a colour, which is an integer from 0 to 9{_MEND}"
        raise BadInput(path, f"{where}, row {number}: {rule}")
    return np.frombuffer(bytes(chain.from_iterable(rows)), np.uint8).reshape(len(rows), -1)


def _size(path: Path, rule: str, found: object) -> BadInput:
    if not isinstance(found, list) or len(found) <= SIDE:
        return BadInput(path, rule + _MEND)
    return TooLarge(
        path,
        f"{rule}, and this one has {len(found)}: leave the task out, or its folder by [settings] "
        'subsets; `kind = "grid"` takes larger grids, as JSON lines',
    )


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN]


_MEND: Final = "; mend the task, or leave it out"
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

"""ARC as Kaggle and TRM hold it: a subset's challenges in one file, their outputs in another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.contract import BadInput
from gristmill.puzzles.raw.file_forms import BYTE_ORDER_MARK, check_encoding
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import members
from gristmill.untrusted.limits import Limits
from gristmill.untrusted.lines import reads

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
    """The subsets in a source, sorted by their files.

    names: of the files in the source. wanted: names of the subsets to take; default: all but a
    subset `test` without solutions, which are hidden ones.

    Raises BadInput where one of the two files is missing.
    """
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
    """The tasks of a subset: id and task, with the outputs of its test pairs; and a sha256.

    limits: of one task. The sha256, in hex, is that of the file of challenges.
    """
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
        for task, value in members(seen(reads(file)), path, limits, _once(path)):
            if not isinstance(task, str):
                raise BadInput(path, "must hold an object: the id of each task, and the task")
            if task in found:
                raise BadInput(path, f"has the task {task!r:.80} twice")
            found[task] = value
    return found, digest.hexdigest()


def _once(path: Path) -> Any:
    def made(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        if len(read) != len(pairs):
            raise BadInput(path, "has a key twice in one object")
        return read

    return made


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

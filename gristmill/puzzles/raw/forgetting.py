"""How puzzles of a drop are forgotten: ARC tasks by id, rows of tables by file and line.

Source: docs/takedowns.md#families
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gristmill.families import Forgets, Unit
from gristmill.inbox.marks import FORGOTTEN
from gristmill.puzzles.raw.arc_tasks import is_collection
from gristmill.untrusted.files import open_file
from gristmill.untrusted.json_text import members
from gristmill.untrusted.lines import line_places, lines, reads
from gristmill.untrusted.walk import visible_files


def forgets() -> Forgets:
    """How puzzles are forgotten."""
    return Forgets(_units, places=_places)


def _places(path: Path) -> list[tuple[int, int]] | None:
    """Begin and end of each line of a table; None for the tasks of one file."""
    with open_file(path, root=path.parent) as file:
        return None if path.suffix == ".json" else [*line_places(reads(file), path)]


def _units(_: Path, drop: Path) -> Iterator[Unit]:
    for name in visible_files(drop, besides=(FORGOTTEN,)):
        path = drop / name
        with open_file(path, root=drop) as file:
            if is_collection(name.rpartition("/")[2]):
                for number, (key, task) in enumerate(members(reads(file), path), 1):
                    yield Unit(name, number, str(key), {"task": json.dumps(task)})
            elif name.endswith(".json"):
                task = file.read().decode("utf-8", "replace").strip()
                yield Unit(name, 0, path.stem, {"task": task})
            elif name.endswith((".csv", ".txt", ".jsonl")):
                yield from _lines(name, reads(file), path)


def _lines(name: str, texts: Iterator[bytes], path: Path) -> Iterator[Unit]:
    """Yield the lines of a table, by the columns of its header if it is a CSV."""
    header = list[str]()
    for number, line in enumerate(lines(texts, path), 1):
        text = line.decode("utf-8", "replace").strip()
        cells = [text] if name.endswith(".jsonl") else text.split(",")
        if number == 1 and name.endswith(".csv"):
            header = cells
        elif text:
            columns = header if len(header) == len(cells) else map(str, range(len(cells)))
            yield Unit(name, number, "", dict(zip(columns, cells, strict=True)))

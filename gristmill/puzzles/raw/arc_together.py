"""Tasks of ARC that share a file, in any form of JSON: by the way to the first grid in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from gristmill.contract import GristmillError
from gristmill.untrusted.files import LinkRule, open_file
from gristmill.untrusted.json_text import Way, jq, way_to

_HEAD: Final = 1 << 20
_LINES: Final = (".jsonl", ".ndjson")


class Tasks(NamedTuple):
    """Where a file has its tasks.

    file: its name. way: to a task, where lines are a list; empty for a file that is one task.
    pairs: the key of its first list of pairs. output: the filter of jq for the output of a pair.
    """

    file: str
    way: Way
    pairs: str
    output: str

    @property
    def cure(self) -> str:
        """What makes two files as Kaggle's of them."""
        above, tasks = self.way[:-1], jq(self.way[:-1])
        if None in self.way:
            first = len(self.way) - self.way[::-1].index(None)
            above, value = self.way[: first - 1], jq(("value", *self.way[first:]))
            listed = f'to_entries | map({{key: "t\\(.key)", value: {value}}}) | from_entries'
            tasks = f"{jq(above)} | {listed}"
        if self.pairs not in ("train", "test"):
            key = jq((self.pairs,))
            tasks += f" | map_values({{train: {key}[:-1], test: {key}[-1:]}})"
        subset = re.sub("[^A-Za-z0-9]+", "", next((key for key in above[::-1] if key), ""))
        name, slurp = f"arc_{subset or 'training'}", " -s" if self.file.endswith(_LINES) else ""
        return (
            "tasks of ARC in one file: make two files as Kaggle's of them, in a folder of their "
            f"own: `jq{slurp} {quote(tasks)} {quote(self.file)} > {name}_challenges.json` and "
            f"`jq 'map_values([.test[] | {self.output}])' {name}_challenges.json > "
            f"{name}_solutions.json`"
            + (f", and so for each other key beside {above[-1]!r}" if above else "")
        )


def tasks_in(root: Path, sizes: Mapping[str, int], links: LinkRule) -> Tasks | None:
    """Where the smallest JSON file has tasks of ARC, by its first MiB; None for another one.

    root: the folder. sizes: of its files, by their names.
    """
    names = [name for name in sizes if name.endswith((".json", *_LINES))]
    if not names:
        return None
    name = min(names, key=lambda name: (sizes[name], name))
    with suppress(GristmillError, OSError), open_file(root / name, root=root, links=links) as file:
        lines: Way = (None,) if name.endswith(_LINES) else ()
        match way_to(
            file.read(_HEAD), lambda way, text: way[-2:] == (None, None) and len(text) == 1
        ):
            case (*above, str(key), None, ("input" | "output" | None) as pair, None, None):
                return Tasks(name, (*lines, *above), key, ".output" if pair else ".[1]")
    return None

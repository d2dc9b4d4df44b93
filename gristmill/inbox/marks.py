"""Marks of a drop: what whoever brings it says about whether it is complete, or a sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

INCOMPLETE: Final = ".incomplete"
DONE: Final = ".done"
SUMS: Final = "SHA256SUMS"
SAMPLE: Final = ".sample"
_BESIDE: Final = {".incomplete": INCOMPLETE, ".done": DONE, ".sha256": SUMS, SAMPLE: SAMPLE}


@dataclass(frozen=True)
class Settling:
    """What an inbox waits for before it takes a drop.

    seconds: for how long a drop without marks must stay unchanged; default 0: for two looks.
    require_done: whether a drop without `.done` or `SHA256SUMS` waits whatever its age;
        default False.
    """

    seconds: float = 0.0
    require_done: bool = False


AT_ONCE: Final = Settling()
"""Two equal looks are enough."""


@dataclass(frozen=True)
class Marks:
    """The marks of one drop, and what they say against the times of its files.

    names: of the marks that are there, by `INCOMPLETE`, `DONE`, `SUMS` and `SAMPLE`.
    sizes: bytes of these files.
    newest_ns: when the newest file of the drop changed, by the inode; 0 without files.
    """

    place: Path = Path()
    names: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    signature: str = ""
    newest_ns: int = 0
    newest_name: str = ""
    done_ns: int = 0

    def path(self, kind: str) -> Path:
        """The path of a mark that is there. It is made when asked: a look at a drop rarely asks."""
        return self.place / self.names[kind]

    @property
    def says_complete(self) -> bool:
        """Whether a list or a `.done` that is no older than the files says so.

        A folder that is copied together with an empty `.done` may have it before its other files.
        """
        if SUMS in self.names or self.sizes.get(DONE, 0):
            return True
        return DONE in self.names and self.done_ns >= self.newest_ns

    def missing(self) -> str:
        """Why a drop that needs a mark does not have one that counts."""
        if DONE in self.names:
            return (
                f"{self.newest_name} changed after {DONE} came: `touch` {DONE} when the copy is "
                "complete"
            )
        return (
            f"has no {DONE} and no {SUMS}, and require_done is true in gristmill.toml: bring one "
            "of them as the last file"
        )


def marks_of(
    found: Mapping[str, os.stat_result], place: Path, newest: tuple[int, str], beside: str = ""
) -> Marks:
    """Returns the marks of a drop."""
    if not found:
        return Marks(place, newest_ns=newest[0], newest_name=newest[1])
    kinds = {name: _BESIDE[name.removeprefix(beside)] if beside else name for name in found}
    lines = [
        f"{kinds[name]} {stat_.st_size} {stat_.st_mtime_ns} {stat_.st_ctime_ns}"
        for name, stat_ in sorted(found.items())
    ]
    done = next((found[name].st_ctime_ns for name, kind in kinds.items() if kind == DONE), 0)
    return Marks(
        place,
        {kind: name for name, kind in kinds.items()},
        {kind: found[name].st_size for name, kind in kinds.items()},
        ";".join(lines),
        *newest,
        done,
    )


def is_mark(name: str) -> bool:
    """Whether a file of a drop that is a folder is one of its marks."""
    return name in (INCOMPLETE, DONE, SUMS, SAMPLE)


def marked_file(name: str, ending_of: Callable[[str], str]) -> str | None:
    """Returns the name of the file that an entry of an inbox is a mark of; None for no mark."""
    for ending in _BESIDE:
        file = name.removesuffix(ending)
        if file != name and ending_of(file):
            return file
    return None


def stats_beside(path: Path) -> dict[str, os.stat_result]:
    """Returns the stat of each mark of a file, by the name of the mark.

    path: the file, a drop. A mark may be anything; a list that is no regular file is refused when
        it is read.
    """
    found = {}
    for ending in _BESIDE:
        name = path.name + ending
        with suppress(FileNotFoundError):
            found[name] = (path.parent / name).lstat()
    return found

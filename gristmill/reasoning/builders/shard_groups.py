"""The normalised file as groups of records: byte ranges that parts are made of.

See also `shard_part.py`. Source: `docs/formats/reasoning.md#shards`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

_GROUP_BYTES: Final = 1 << 21
_MOST_RANKS: Final = 16
"""A group grows with the world size, so that parts stay large, up to so many ranks."""


@dataclass(frozen=True)
class Group:
    """Consecutive lines of a normalised file.

    begin: byte where the first one begins.
    first_line: number of lines before. lines: their number.
    first_record: number of records before. records: their number; blank lines are none.
    """

    begin: int
    first_line: int
    lines: int
    first_record: int
    records: int

    def of_rank(self, path: Path, rank: int, world_size: int) -> Iterator[tuple[int, bytes]]:
        """Yield the records of a rank: record k belongs to rank k modulo the world size.

        Yields the number of each line, from 1, and the line.
        """
        first = (rank - self.first_record) % world_size
        with path.open("rb") as file:
            file.seek(self.begin)
            lines: Iterable[tuple[int, bytes]] = enumerate(
                islice(file, self.lines), self.first_line + 1
            )
            if self.lines != self.records:
                lines = (each for each in lines if not is_blank(each[1]))
            yield from islice(lines, first, None, world_size)


class Groups(NamedTuple):
    """A file as groups. sha256: hex, of the file. records: of all groups."""

    groups: list[Group]
    sha256: str
    records: int


def scan(path: Path, world_size: int) -> Groups:
    """Return the groups of a normalised file; one group is in memory at a time."""
    size = _GROUP_BYTES * min(world_size, _MOST_RANKS)
    digest, groups = hashlib.sha256(), []
    begin = lines = records = 0
    with path.open("rb") as file:
        while data := file.read(size):
            data += file.readline()
            digest.update(data)
            group = Group(begin, lines, *_counted(data, records))
            groups.append(group)
            begin, lines, records = begin + len(data), lines + group.lines, records + group.records
    return Groups(groups, digest.hexdigest(), records)


def is_blank(line: bytes) -> bool:
    """Whether a line is no record: it holds nothing but white space."""
    return not line or line.isspace()


def _counted(data: bytes, before: int) -> tuple[int, int, int]:
    """Lines, records before, records."""
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    # A record of ours begins with a brace.
    if data.count(b"\n{") + data.startswith(b"{") == lines:
        return lines, before, lines
    return lines, before, sum(not is_blank(line) for line in data.split(b"\n"))

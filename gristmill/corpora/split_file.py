"""The lines of a split: one file, or parts of it in the folder of its name.

A split has one path, `<split>.jsonl`. Where that is no file, its lines are those of
`<split>/00000.jsonl` and what follows. Source: `docs/formats/reasoning.md#parts`.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import sha256
from io import SEEK_CUR, SEEK_END, BufferedReader, RawIOBase
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self, cast

from gristmill.contract import BadInput, FileNote
from gristmill.hashing import HashedFile

FIRST: Final = "00000.jsonl"
_READ_BYTES: Final = 1 << 20


def files(path: Path) -> list[Path]:
    """The files of a split, in order: the one at its path, or its parts.

    Raises BadInput for a part that is not there though a later one is.
    """
    if path.is_file():
        return [path]
    found = {
        int(each.stem): each
        for each in path.with_suffix("").glob("[0-9]*.jsonl")
        if each.stem.isdigit()
    }
    for number in range(max(found, default=-1) + 1):
        if number not in found:
            rule = "is missing, and later parts are there: build the partition again"
            raise BadInput(_part(path, number), rule)
    return [found[number] for number in sorted(found)] or [path]


def _part(path: Path, number: int) -> Path:
    return path.with_suffix("") / f"{number:05d}.jsonl"


def is_there(path: Path) -> bool:
    """Whether a split has its file or parts."""
    return files(path)[0].is_file()


def size(path: Path) -> int:
    """The bytes of a split."""
    return sum(each.stat().st_size for each in files(path))


def opened(path: Path) -> BinaryIO:
    """The lines of a split as one file for reading bytes, at whose places one may seek."""
    found = files(path)
    if len(found) == 1:
        return found[0].open("rb")
    return cast(BinaryIO, BufferedReader(_Joined(found), _READ_BYTES))


def lines(path: Path) -> Iterator[tuple[Path, int, bytes]]:
    """Yield the lines of a split, each with its file, and its number there, from 1."""
    for each in files(path):
        with each.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield each, number, line


def located(path: Path, line: int) -> tuple[Path, int]:
    """The file with a line of a split, and the line's number there, from 1; reads what is before.

    line: its number in the split, from 1.
    """
    if len(files(path)) > 1:
        for count, (file, number, _) in enumerate(lines(path), 1):
            if count == line:
                return file, number
    return path, line


class Range(NamedTuple):
    """The lines of a file that begin from one place on and before another one."""

    path: Path
    begin: int
    end: int

    def lines(self) -> Iterator[bytes]:
        """Yield them; the last one may end behind the range."""
        with self.path.open("rb") as file:
            if at := self.begin:
                file.seek(at - 1)
                at += len(file.readline()) - 1
            while at < self.end and (line := file.readline()):
                at += len(line)
                yield line


def ranges(path: Path, size: int) -> Iterator[Range]:
    """Yield the ranges of a file, of `size` bytes each; one for an empty file."""
    for begin in range(0, max(1, path.stat().st_size), size):
        yield Range(path, begin, begin + size)


def workers_for(tasks: Sequence[Range], workers: int, alone: int) -> int:
    """How many of `workers` are worth their start. alone: bytes that one process reads sooner."""
    is_long = sum(each.end - each.begin for each in tasks) > alone
    return min(workers, os.cpu_count() or 1) if is_long else 1


def sha256_of_parts(hashes: Sequence[str]) -> str:
    """The hash that stands for a split: of its one file, else of the hashes, a line each."""
    return hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest()


class _Joined(RawIOBase):
    """Files as one, end to end; one of them is open at a time."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self._ends = [*accumulate(path.stat().st_size for path in paths)]
        self._at = 0
        self._number, self._file = 0, paths[0].open("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + {SEEK_CUR: self._at, SEEK_END: self._ends[-1]}.get(whence, 0)
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        number = bisect_right(self._ends, self._at)
        if number == len(self._ends):
            return 0
        if number != self._number:
            self._file.close()
            self._number, self._file = number, self._paths[number].open("rb", buffering=0)
        self._file.seek(self._at - (self._ends[number - 1] if number else 0))
        left = self._ends[number] - self._at
        count = self._file.readinto(buffer[:left])
        if not count and len(buffer):
            raise BadInput(self._paths[number], "became shorter while it was read")
        self._at += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class SplitWriter:
    """Writes the lines of a split. A part ends with the line that makes it `part_bytes` long.

    path: of the split. part_bytes: None for one file. A split of one part is a file at `path`.
    Where a part ends depends on the lines alone, not on the pieces in which they come.

    Use it as a context manager.
    """

    def __init__(self, path: Path, part_bytes: int | None) -> None:
        self._path, self._part_bytes = path, part_bytes
        self._parts: list[tuple[HashedFile, int]] = []
        self._file, self._rows, self._is_full = HashedFile(path), 0, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes, which need not end with a line."""
        if self._part_bytes is None:
            self._file.write(data)
            return
        data = bytes(data)
        while data:
            if self._is_full:
                self._begin_part()
            end = data.find(b"\n", max(0, self._part_bytes - self._file.bytes - 1)) + 1
            now, data = (data[:end], data[end:]) if end else (data, b"")
            self._file.write(now)
            self._rows += now.count(b"\n")
            self._is_full = bool(end)

    def _begin_part(self) -> None:
        self._file.close()
        if not self._parts:
            first = _part(self._path, 0)
            first.parent.mkdir()
            self._path.rename(first)
        self._parts.append((self._file, self._rows))
        self._file = HashedFile(_part(self._path, len(self._parts)))
        self._rows = 0

    def notes(self, name: str, rows: int) -> dict[str, FileNote]:
        """The notes of the files. name: path of the split in the artifact. rows: of all."""
        if not self._parts:
            return {name: FileNote(rows=rows, sha256=self._file.sha256, bytes=self._file.bytes)}
        return {
            _part(Path(name), number).as_posix(): FileNote(
                rows=count, sha256=file.sha256, bytes=file.bytes
            )
            for number, (file, count) in enumerate([*self._parts, (self._file, self._rows)])
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

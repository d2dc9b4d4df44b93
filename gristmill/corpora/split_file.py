"""The lines of a split: one file, or parts of it in the folder of its name.

A split has one path, `<split>.jsonl`. Where that is no file, its lines are those of
`<split>/00000.jsonl` and what follows. The index of its shards, `<split>/index.jsonl`, and its
spans are in parts where it is; so is a shard of conversations, `shard_NN.parquet`.
Source: `docs/formats/reasoning.md#parts`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from io import SEEK_CUR, SEEK_END, BufferedReader, RawIOBase
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Self, cast

import orjson

from gristmill.contract import BadInput, FileNote
from gristmill.hashing import HashedFile, kept

_READ_BYTES: Final = 1 << 20
_WHOLE: Final = -1
"""In the place of a part's number: the one file of a split."""


def files(path: Path) -> list[Path]:
    """The files of a split, in order: the one at its path, or its parts.

    Where the record of its artifact lists parts, they are all of them. Without a record nobody can
    say that the last parts are gone.

    Raises BadInput for a file that is not there though the record or a later part says so, and
    where one file and parts are both there.
    """
    found, listed = _found(path), _listed(path)
    if _WHOLE in found and len(found) > 1:
        rule = (
            f"is there, and so are parts in {path.stem}/: remove what the record of the split does "
            "not list, or what is older where there is no record"
        )
        raise BadInput(path, rule)
    if not found and max(listed, default=_WHOLE) == _WHOLE:
        return [path]
    says = "the record of the split lists it" if listed else "later parts are there"
    wanted = listed or ([_WHOLE] if _WHOLE in found else [*range(max(found) + 1)])
    for number in wanted:
        if number not in found:
            rule = f"is missing, and {says}: build the partition again"
            raise BadInput(part_of(path, number), rule)
    return [found[number] for number in wanted]


def _found(path: Path) -> dict[int, Path]:
    """The files of a split that are there, by the numbers of parts."""
    parts = path.with_suffix("").glob(f"[0-9]*{path.suffix}")
    found = {int(each.stem): each for each in parts if each.stem.isdecimal()}
    return found | ({_WHOLE: path} if path.is_file() else {})


def _listed(path: Path) -> list[int]:
    """The numbers of the parts that the record of a split lists, in order; none without one."""
    whole = path.absolute()
    for root in whole.parents[:3]:
        name = whole.relative_to(root).with_suffix("").as_posix()
        form = re.compile(rf"{re.escape(name)}(?:/(\d+))?{re.escape(whole.suffix)}")
        key = "__".join(name.split("/")[:2]).removesuffix(".spans")
        for record in (root / f"provenance/{key}.json", root / "provenance.json"):
            if found := [*filter(None, map(form.fullmatch, kept(_outputs, record)))]:
                return sorted(_WHOLE if each[1] is None else int(each[1]) for each in found)
    return []


def _outputs(record: Path) -> list[str]:
    """The paths that a record lists: none of a damaged one, of which its own readers say so."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        return [str(each["path"]) for each in orjson.loads(record.read_bytes())["outputs"]]
    return []


def part_of(path: Path, number: int) -> Path:
    """The path of a part, or of the one file of a split. path: of the split."""
    return path if number == _WHOLE else path.with_suffix("") / f"{number:05d}{path.suffix}"


def is_there(path: Path) -> bool:
    """Whether a split has its file or parts; `files` says whether they are right."""
    return bool(_found(path))


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
            first = part_of(self._path, 0)
            first.parent.mkdir()
            self._path.rename(first)
        self._parts.append((self._file, self._rows))
        self._file = HashedFile(part_of(self._path, len(self._parts)))
        self._rows = 0

    def notes(self, name: str, rows: int) -> dict[str, FileNote]:
        """The notes of the files. name: path of the split in the artifact. rows: of all."""
        if not self._parts:
            return {name: FileNote(rows=rows, sha256=self._file.sha256, bytes=self._file.bytes)}
        return {
            part_of(Path(name), number).as_posix(): FileNote(
                rows=count, sha256=file.sha256, bytes=file.bytes
            )
            for number, (file, count) in enumerate([*self._parts, (self._file, self._rows)])
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

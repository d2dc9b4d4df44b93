"""Looks for texts in every file of a folder, without an index: in decoded values, and in bytes.

So it can prove what the index of leaks found. Source: `docs/takedowns.md#the-scan`.
"""

from __future__ import annotations

import html
import io
import json
import lzma
import os
import re
import sqlite3
import unicodedata
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

import numpy as np

from gristmill.contract import GristmillError
from gristmill.corpora.raw.texts import Unfit
from gristmill.leaks.texts import every_part, leaves, rows
from gristmill.run.progress import SILENT, Progress
from gristmill.untrusted.lines import reads
from gristmill.untrusted.walk import unpack

LEAST: Final = 8
"""Bytes of a text that is looked for, at least."""
_BATCH: Final = 4 << 20
_BITS: Final = 20
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_PACKED: Final = {
    b"\x1f\x8b": "gz",
    b"\x28\xb5\x2f\xfd": "zst",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
}
_UNREADABLE: Final = (
    *(OSError, ValueError, RuntimeError, EOFError, GristmillError),
    *(sqlite3.Error, BadZipFile, zlib.error, lzma.LZMAError),
)
"""What damaged files, those with a password, and those of others raise."""
_CUT: Final = re.compile("[>]([^<>]*)…")
_SQLITE: Final = b"SQLite format 3\0"


class Found(NamedTuple):
    """Where a text stands: a file below the root, its row from 1, 0 for none, and the column.

    place: of its drop or artifact, as `reasoning/normalized gsm8k__train`; empty for another file.
    text: its number.
    """

    path: Path
    place: str
    row: int
    column: str
    text: int

    def facts(self, root: Path) -> dict[str, Any]:
        """As JSON says it, with the path below a root."""
        file = self.path.relative_to(root).as_posix()
        return {"place": self.place, "file": file, "row": self.row, "column": self.column}


def normalised(text: str) -> str:
    """A text without case, width and spacing."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def octets_of(text: str) -> bytes:
    """The bytes of a text, also of one with half a pair of UTF-16."""
    return text.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> list[str]:
    """A text as it is, and as writers of JSON write it in a string."""
    wide, plain = (json.dumps(text, ensure_ascii=flag)[1:-1] for flag in (False, True))
    capitals = re.sub(r"\\u[0-9a-f]{4}", lambda each: f"\\u{each[0][2:].upper()}", plain)
    made = (text, wide, plain, capitals, wide.replace("/", "\\/"), plain.replace("/", "\\/"))
    return [*dict.fromkeys(made)]


class Patterns:
    """Bytes that are looked for together, however many there are. Raises ValueError for short ones.

    patterns: by their bytes, the numbers that are found with them.
    """

    def __init__(self, patterns: Mapping[bytes, int]) -> None:
        # Patterns of one shape are looked up together: many may differ in a number alone.
        self._at = defaultdict[bytes, dict[tuple[int, int], dict[bytes, int]]](dict)
        self.longest = max(map(len, patterns), default=0)
        for pattern, number in patterns.items():
            if len(pattern) < LEAST:
                raise ValueError(f"a pattern of {len(pattern)} bytes")
            middle = (len(pattern) - LEAST) // 2
            shapes = self._at[pattern[middle : middle + LEAST]]
            shapes.setdefault((middle, len(pattern)), {})[pattern] = number
        self._is_anchor = np.zeros(1 << _BITS, np.bool_)
        self._is_anchor[self._slots(np.frombuffer(b"".join(self._at), "<u8"))] = True

    @staticmethod
    def _slots(words: Any) -> Any:
        return (words * _MIX) >> np.uint64(64 - _BITS)

    def find(self, octets: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield begin, end and number of each pattern in some bytes."""
        for shift in range(LEAST if self._at else 0):
            count = (len(octets) - shift) // LEAST
            words = np.frombuffer(octets, "<u8", max(count, 0), shift if count > 0 else 0)
            for at in np.flatnonzero(self._is_anchor[self._slots(words)]).tolist():
                begin = shift + LEAST * at
                shapes = self._at.get(octets[begin : begin + LEAST], {})
                for (before, size), patterns in shapes.items():
                    start = begin - before
                    if start >= 0 and (one := octets[start : start + size]) in patterns:
                        yield start, start + size, patterns[one]

    def stream(self, parts: Iterable[bytes]) -> set[int]:
        """The numbers of the patterns in a stream, also where they stand in two parts of it."""
        found, held = set[int](), b""
        for part in parts:
            held += part
            if len(held) >= _BATCH:
                found |= {number for _, _, number in self.find(held)}
                held = held[-self.longest :]
        return found | {number for _, _, number in self.find(held)}


class Search:
    """Texts that are looked for. texts: with at least `LEAST` bytes once they are normalised.

    unread: files that `everywhere` could not search in what they pack, and why.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [*map(normalised, texts)]
        # A value may be JSON itself, as the arguments of a tool.
        self._values = Patterns(
            {octets_of(normalised(e)): at for at, text in enumerate(texts) for e in _escaped(text)}
        )
        forms = dict[bytes, int]()
        for at, text in enumerate(texts):
            for form in (*_escaped(text), text.replace('"', '""'), html.escape(text)):
                forms |= {octets_of(each): at for each in _escaped(form)}
        # One of few bytes may be long once it is normalised.
        self.raw = Patterns({form: at for form, at in forms.items() if len(form) >= LEAST})
        self.unread = dict[Path, str]()

    def values(self, values: Sequence[str]) -> set[tuple[int, int]]:
        """Place of the value and number of the text, for each text in one of some values."""
        octets = [octets_of(normalised(value)) for value in values]
        ends = [*accumulate(len(each) + 1 for each in octets)]
        blob, found = b"\0".join(octets), set[tuple[int, int]]()
        for begin, end, number in self._values.find(blob):
            at = bisect_right(ends, begin)
            start, own = ends[at] - len(octets[at]) - 1, octets[at]
            before = own[: begin - start].decode("utf-8", "replace")[-1:]
            after = own[end - start :].decode("utf-8", "replace")[:1]
            begins_word = before.isalnum() and blob[begin : begin + 1].isalnum()
            if not begins_word and not (after.isalnum() and blob[end - 1 : end].isalnum()):
                found.add((at, number))
        return found

    def pictured(self, event: str) -> bool:
        """Whether a picture in an event shows a cut line of a text."""
        plain = "".join(text for _, text in leaves(json.loads(event)))
        found = _CUT.findall(unquote(plain.replace("\\", "")))
        cut = (html.unescape(part).replace("·", " ").rpartition(": ")[2] for part in found)
        shown = [text for part in cut if len(text := normalised(part)) >= LEAST]
        return any(part in whole for part in shown for whole in self._texts)

    def in_rows(self, path: Path, place: str, found: Iterable[tuple[int, Any]]) -> Iterator[Found]:
        """Yield where the texts stand in rows, as `leaks.texts.rows` gives them."""
        held, size = list[tuple[int, str, str]](), 0
        for row, value in chain(found, [(0, None)]):
            new = [] if isinstance(value, Unfit) else [(row, *each) for each in leaves(value)]
            held += new
            size += sum(len(text) for *_, text in new)
            if size > _BATCH or value is None:
                for at, number in sorted(self.values([text for *_, text in held])):
                    yield Found(path, place, *held[at][:2], number)
                held, size = [], 0

    def everywhere(
        self, root: Path, besides: Collection[Path], progress: Progress = SILENT
    ) -> Iterator[Found]:
        """Yield where the texts stand below a data root, row by row where rows can be read.

        besides: folders and files that are passed over.
        """
        parts = {part.file: part for part in every_part(root)} if self._texts else {}
        files = [*files_below(root, besides)] if self._texts else []
        with progress.stage("looking for the texts", "bytes", sum(map(_size, files))) as stage:
            for path in files:
                part, seen = parts.get(path), set[int]()
                with suppress(GristmillError):  # its bytes are looked at below
                    found = rows(path, part.corpus, part.links) if part else ()
                    for each in self.in_rows(path, part.place if part else "", found):
                        seen.add(each.text)
                        yield each
                for text in sorted(self._in_file(path) - seen):
                    yield Found(path, part.place if part else "", 0, "", text)
                stage.advance(_size(path))

    def _in_file(self, path: Path) -> set[int]:
        """The texts in the bytes of a file, and in what it packs. A file that went holds none."""
        found = set[int]()
        try:
            with path.open("rb") as file:
                found |= self.raw.stream(reads(file))
                file.seek(0)
                found |= self.raw.stream(_inside(file, path))
        except FileNotFoundError:
            pass
        except _UNREADABLE as error:
            self.unread[path] = str(error)
        return found


def files_below(root: Path, besides: Collection[Path]) -> Iterator[Path]:
    """Yield the regular files below a folder, also behind links, without those passed over.

    What a link leads to below the folder itself is met without the link, too.
    """
    whole, seen = root.resolve(), set[Path]()

    def is_new(path: Path) -> bool:
        if path in besides or not path.is_symlink():
            return path not in besides
        target = path.resolve()
        is_met = target in seen or target.is_relative_to(whole) or whole.is_relative_to(target)
        seen.add(target)
        return not is_met

    for here, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if is_new(Path(here, name)))
        for name in sorted(names):
            if is_new(path := Path(here, name)) and path.is_file():
                yield path


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _inside(file: io.BufferedReader, path: Path) -> Iterator[bytes]:
    """What a file packs, by its first bytes, however it is named."""
    head = file.read(len(_SQLITE))
    file.seek(0)
    if head.startswith(b"PAR1"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(1 << 12):
                for column in batch.columns:
                    yield from (bytes(each) for each in column.buffers() if each is not None)
    elif head == _SQLITE:
        # Where nobody writes, to read makes no file beside it.
        way = "mode=ro" if _size(path.with_name(f"{path.name}-wal")) else "immutable=1"
        with closing(sqlite3.connect(f"{path.as_uri()}?{way}", uri=True)) as database:
            names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (name,) in names.fetchall():
                for value in chain.from_iterable(database.execute(f'SELECT * FROM "{name}"')):
                    if isinstance(value, str | bytes):
                        yield (value.encode() if isinstance(value, str) else value) + b"\0"
    elif head.startswith(b"PK\3\4"):
        with ZipFile(file) as packed:
            for name in packed.namelist():
                with packed.open(name) as member:
                    yield from reads(member)  # type: ignore[arg-type]
                    yield b"\0"
    else:
        for begin in filter(head.startswith, _PACKED):
            yield from unpack(file, path, _PACKED[begin])

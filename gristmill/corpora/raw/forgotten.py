"""Rows of a drop that no build takes any more, and the numbers that no other row gets.

A tombstone names a row by a hash of it, with a key that each data root has for itself, since the
plain hash of a short text can be guessed. The hash begins with one of the key and the columns, so
that a build with another key is refused: what it writes depends on its inputs alone.
Source: `docs/formats/reasoning.md#forgotten-rows`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput
from gristmill.corpora.corpus import Corpus
from gristmill.corpora.raw.reader import columns_of
from gristmill.corpora.raw.transforms import Row
from gristmill.inbox.marks import FORGOTTEN, tombstones_of
from gristmill.layout import WORK
from gristmill.settings.fields import shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, read_file

ERASED: Final = "#erased"
"""Ends the file of a tombstone whose row was taken out of it, so that no row is at its place."""
_MOST: Final = 1 << 28
_KEY_BYTES: Final = 32
_HASH: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{32}")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_CURE: Final = "correct the line, or take it out"


@dataclass(frozen=True)
class Tombstone:
    """A row that is not built: the fields of a line, and the line, from 1; 0 of a new one."""

    file: str
    row: int
    split: str
    number: int | None
    hash: str | None
    reason: str
    date: str
    line: int = field(default=0, compare=False)


_FIELDS: Final = [each.name for each in fields(Tombstone)][:-1]
_RULES: Final[Mapping[str, tuple[Callable[[Any], object], str]]] = {
    "file": (lambda it: isinstance(it, str) and it, "a path in the drop"),
    "row": (lambda it: type(it) is int and it >= 0, "the number of a row, from 1"),
    "split": (lambda it: isinstance(it, str), "the name of a split"),
    "number": (lambda it: it is None or (type(it) is int and it >= 0), "a number from 0, or null"),
    "hash": (
        lambda it: it is None or (isinstance(it, str) and _HASH.fullmatch(it)),
        "8 and 32 hexadecimal digits with a hyphen between, or null",
    ),
    "reason": (lambda it: isinstance(it, str), "a text"),
    "date": (lambda it: isinstance(it, str) and _DATE.fullmatch(it), "a day as 2026-11-30"),
}


def read(
    drop: Path, splits: Sequence[str] | None = None, links: LinkRule = REFUSE_LINKS
) -> list[Tombstone]:
    """The tombstones of a drop, none where it has no file of them.

    splits: of its corpus; default: whichever they are, or none.
    links: what happens if the file is a link; default: it is refused.

    Raises BadInput with the line for one that is none, that names another split, or whose number
    another line of the split has.
    """
    path = tombstones_of(drop)
    try:
        octets = read_file(path, root=drop.parent, most=_MOST, links=links)
    except FileNotFoundError:
        return []
    found, numbers = list[Tombstone](), dict[tuple[str, int], int]()
    for line, text in enumerate(octets.splitlines(), 1):
        if not text.strip():
            continue
        try:
            values = orjson.loads(text)
            problem = _problem(values, splits, numbers)
        except ValueError as error:
            problem = f"is not JSON: {error}"
        if problem:
            raise BadInput(path, f"{problem}: {_CURE}", line)
        found.append(made := Tombstone(**values, line=line))
        if made.number is not None:
            numbers[made.split, made.number] = line
    return found


def _problem(
    values: Any, splits: Sequence[str] | None, numbers: Mapping[tuple[str, int], int]
) -> str:
    """Why an object is no tombstone, empty where it is one. numbers: the lines of those before."""
    if not isinstance(values, dict) or sorted(values) != sorted(_FIELDS):
        return f"must be an object with the fields {', '.join(_FIELDS)}"
    for name, (is_right, what) in _RULES.items():
        if not is_right(values[name]):
            return f"{name} is {shown(values[name])}, must be {what}"
    split, number = values["split"], values["number"]
    if splits is not None and split not in splits:
        return f"split is {shown(split)}, must be one of {', '.join(splits)}"
    if split and not values["row"]:
        return "row is 0, must be the number of a row, from 1"
    if number is None and values["hash"] is None:
        return "has neither number nor hash, so that it says nothing"
    first = numbers.get((split, number))
    return "" if first is None else f"number {number} of {split} is that of line {first}, too"


def add(drop: Path, new: Iterable[Tombstone], splits: Sequence[str] | None = None) -> int:
    """Add tombstones to those of a drop, in one rename; returns how many it did not have.

    splits: of its corpus; default: whichever they are. Errors as `read`.
    """
    every = [*(old := read(drop, splits)), *new]
    order = splits or [*dict.fromkeys(each.split for each in every)]
    every = sorted(
        {*every},
        key=lambda each: (
            *(order.index(each.split), each.number is None, each.number or 0),
            *(each.file, each.row, str(each.hash), each.reason, each.date),
        ),
    )
    if more := len(every) - len({*old}):
        _write(drop, every)
    return more


def note_erased(drop: Path, files: Collection[str]) -> None:
    """Note that the rows of some files that have tombstones are in no file now."""
    if every := read(drop):
        gone = [f"{each.file}{ERASED}" if each.file in files else each.file for each in every]
        _write(drop, [replace(each, file=of) for each, of in zip(every, gone, strict=True)])


def _write(drop: Path, tombstones: Iterable[Tombstone]) -> None:
    path = tombstones_of(drop)
    hidden = path.with_name(f".{path.name}")
    with hidden.open("wb") as file:
        for each in tombstones:
            file.write(orjson.dumps({name: getattr(each, name) for name in _FIELDS}) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)


def key_of(root: Path, *, makes: bool = False) -> bytes:
    """The key of a data root, empty where it has none. makes: whether it is made then.

    Raises BadInput where the file holds no key.
    """
    path = root / WORK / "key"
    if makes:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not os.fstat(file.fileno()).st_size:  # it is new, or its maker was killed
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
    key = path.read_bytes() if path.exists() else b""
    if len(key) not in (0, _KEY_BYTES):
        raise BadInput(path, f"has {len(key)} bytes, a key has {_KEY_BYTES}: bring the key back")
    return key


def mark_of(key: bytes, columns: Sequence[str] = ()) -> str:
    """What begins the hashes of rows: of the key, and of the columns that are read, if any."""
    return blake2b(json.dumps(columns).encode(), key=key, digest_size=4).hexdigest()


def hash_of(key: bytes, values: Mapping[str, Any]) -> str:
    """The keyed hash of a row, by all its values."""
    try:
        octets = orjson.dumps(values, default=str, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a number of more than 64 bits, or half a pair of UTF-16
        octets = json.dumps(values, default=str, sort_keys=True).encode()
    return blake2b(octets, key=key, digest_size=16).hexdigest()


def refuse_other_key(path: Path, tombstones: Iterable[Tombstone], mark: str) -> None:
    """Raise BadInput for a hash that does not begin as those of the data root do."""
    for each in tombstones:
        if each.hash and not each.hash.startswith(mark):
            rule = (
                "its hash is of another key than that of this data root, or of other columns than "
                "the drop has now: bring .gristmill/key of the root, and the corpus.toml if it "
                "was written with one, or write the line again"
            )
            raise BadInput(path, rule, each.line)


def hasher(key: bytes, corpus: Corpus) -> Callable[[Row], str]:
    """What gives the hash of a row of a corpus, of the values of the columns that it reads."""
    columns = sorted(columns_of(corpus))
    begin = mark_of(key, columns)

    def hash_of(row: Row) -> str:
        values = {name: row[name] for name in columns if row.get(name) is not None} or dict(row)
        text = json.dumps(values, sort_keys=True, default=str).encode()
        return f"{begin}-{blake2b(text, key=key, digest_size=16).hexdigest()}"

    return hash_of


class Forgotten:
    """The tombstones of one split, and what a build makes of them.

    drop: theirs. key: of the data root. hashes: without any, no row need be asked for.

    Raises BadInput for a hash of another key.
    """

    def __init__(
        self, drop: Path, tombstones: Sequence[Tombstone], key: bytes, corpus: Corpus
    ) -> None:
        self.path, self._all = drop / FORGOTTEN, tombstones
        self._hash_of = hasher(key, corpus)
        self.numbers = [each.number for each in tombstones if each.number is not None]
        self.by_date = Counter(each.date for each in tombstones if each.hash)
        self._at = {(each.file, each.row): each for each in tombstones if each.hash}
        self.hashes = {each.hash for each in tombstones if each.hash}
        self._met, self._others = set[str](), list[Tombstone]()
        self._last: dict[str, int] = {}
        refuse_other_key(self.path, tombstones, self._hash_of({})[:8])

    def takes(self, file: str, row: int, values: Mapping[str, Any]) -> bool:
        """Whether a row is forgotten. file: its path in the drop. row: from 1."""
        own = self._hash_of(values)
        if (named := self._at.get((file, row))) is not None and named.hash != own:
            self._others.append(named)
        elif named is not None:
            self._last[file] = row
        if own not in self.hashes:
            return False
        self._met.add(own)
        return True

    def check(self, records: int) -> None:
        """Raise BadInput, once all rows were asked for, for a tombstone that cannot be right.

        That is one whose number is behind the last, and one whose hash no row has while a later
        row of its file stands where its tombstone says: so the row has not been erased.
        """
        end, count = records + len(self.numbers), len(self.numbers)
        for each in self._all:
            if each.number is not None and each.number >= end:
                rule = (
                    f"number {each.number} of {each.split} is out of range: {records:,} records "
                    f"and {count:,} tombstones have the numbers to {end - 1}: {_CURE}, or write "
                    "null where the row had none"
                )
                raise BadInput(self.path, rule, each.line)
        for each in self._others:
            if each.hash not in self._met and each.row < (last := self._last.get(each.file, 0)):
                rule = (
                    f"no row has its hash: {each.file}:{each.row} has another one, and {each.file}:"
                    f"{last} stands where its line says, so that no row before it was erased: "
                    "correct the hash, or write null for it if the row is gone"
                )
                raise BadInput(self.path, rule, each.line)

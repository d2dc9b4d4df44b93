"""Which rows of a drop are named: by file and number, by their ids, by a column, by their text.

Source: `docs/takedowns.md#naming-rows`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.raw.texts import Unfit
from gristmill.families import Forgets, Unit, forgets, inboxes
from gristmill.layout import DROPS
from gristmill.leaks.texts import form, leaves, rows
from gristmill.settings.fields import did_you_mean
from gristmill.takedowns.search import LEAST, normalised, octets_of

_ENOUGH: Final = 32
"""Bytes of a text of a row that is looked for elsewhere; where none has so many, the longest."""


@dataclass(frozen=True)
class Target:
    """A drop whose rows are named. how: rows of its inbox are forgotten."""

    root: Path
    inbox: str
    drop: Path
    how: Forgets

    @property
    def name(self) -> str:
        """As a person writes it."""
        return f"{self.inbox}/{self.drop.name}"

    def path(self, file: str) -> Path:
        """Of a file of the drop, as `Unit.file` names it."""
        return self.drop if self.drop.is_file() else self.drop / file

    def units(self) -> Iterator[Unit]:
        """Yield the rows of the drop."""
        return self.how.units(self.root, self.drop)


def target_of(root: Path, named: str) -> Target:
    """The drop of a name, as `reasoning/gsm8k`. Raises GristmillError where there is none."""
    inbox, _, name = named.removeprefix(f"{DROPS}/").rstrip("/").rpartition("/")
    how = forgets(inbox)
    if how is None:
        known = [each for each in inboxes() if forgets(each)]
        rule = f"one of {', '.join(known)}{did_you_mean(inbox, known)}"
        raise GristmillError(f"{named}: name inbox and drop, as reasoning/gsm8k: {rule}")
    drop = root / DROPS / inbox / name
    if not drop.exists():
        raise GristmillError(f"{named}: there is no drop {drop}")
    return Target(root, inbox, drop, how)


def hash_of(key: bytes, values: Mapping[str, Any]) -> str:
    """The keyed hash of a row, by all its values."""
    try:
        octets = orjson.dumps(values, default=str, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a number of more than 64 bits, or half a pair of UTF-16
        octets = json.dumps(values, default=str, sort_keys=True).encode()
    return blake2b(octets, key=key, digest_size=16).hexdigest()


def texts_in(path: Path) -> list[str]:
    """The texts of a file: a line each, or a string of JSON each. Raises BadInput without any."""
    if form(path.name) is None:
        raise BadInput(path, "must be a .txt with a text a line, or a .jsonl of strings")
    found = list[str]()
    for number, row in rows(path):
        if isinstance(row, Unfit):
            raise BadInput(path, row.rule, number)
        found += (text for _, text in leaves(row))
    for text in found:
        if len(octets_of(normalised(text))) < LEAST:
            raise BadInput(path, f"{text!r} has fewer than {LEAST} bytes: name its row by --rows")
    if not found:
        raise BadInput(path, "has no text")
    return list(dict.fromkeys(found))


def by_rows(target: Target, path: Path) -> list[Unit]:
    """The rows that a file names, `FILE:ROW` or an id a line. Raises BadInput for one of none."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise BadInput(path, f"is not UTF-8: {error}") from error
    wanted = {line: number for number, line in reversed([*enumerate(lines, 1)]) if line}
    if not wanted:
        raise BadInput(path, "names no row")
    found, met = list[Unit](), set[str]()
    for unit in target.units():
        own = {f"{unit.file}:{unit.row}", unit.name, "" if unit.row else unit.file}
        if hits := own & wanted.keys():
            met |= hits
            found.append(unit)
    for line, number in wanted.items():
        if line not in met:
            what = "row" if re.fullmatch(".+:[1-9][0-9]*", line) else "row with the id"
            rule = f"{target.name} has no {what} {line}: write FILE:ROW, or an id"
            raise BadInput(path, rule, number)
    return found


def by_column(target: Target, condition: str) -> list[Unit]:
    """The rows whose column has a value, `KEY=VALUE`. Raises GristmillError where none has."""
    key, mark, value = condition.partition("=")
    if not mark or not key:
        raise GristmillError(f"--where {condition}: write KEY=VALUE, as source=forum")
    found, columns = list[Unit](), dict[str, None]()
    for unit in target.units():
        columns |= dict.fromkeys(unit.values)
        held = unit.values.get(key)
        if held is not None and value in (held if isinstance(held, str) else str(held), str(held)):
            found.append(unit)
    if key not in columns:
        near = did_you_mean(key, columns)
        raise GristmillError(f"--where {condition}: {target.name} has no column {key}{near}")
    if not found:
        raise GristmillError(f"--where {condition}: no row of {target.name} has it")
    return found


def by_text(target: Target, texts: Sequence[str]) -> tuple[list[Unit], list[str]]:
    """The rows of which a value is one of the texts, the texts as they write them."""
    wanted, found, written = {normalised(text) for text in texts}, list[Unit](), [*texts]
    for unit in target.units():
        if same := [text for _, text in leaves(unit.values) if normalised(text) in wanted]:
            found.append(unit)
            written += same
    return found, list(dict.fromkeys(written))


def own_texts(target: Target, units: Sequence[Unit], key: bytes) -> tuple[list[str], int]:
    """The texts by which copies of rows are found, and how many of them other rows have, too.

    A text that is whole in a row of the drop that is not named is not of these rows alone, as the
    first message of many conversations; it is not looked for.
    """
    found = dict[str, str]()
    for unit in units:
        each = {normalised(text): text for _, text in leaves(unit.values)}
        long = [k for k in each if len(octets_of(k)) >= _ENOUGH]
        long = long or [max(each, key=len, default="")]
        found |= {k: each[k] for k in long if len(octets_of(k)) >= LEAST}
    named, shared = {hash_of(key, unit.values) for unit in units}, set[str]()
    for unit in target.units():
        held = {normalised(text) for _, text in leaves(unit.values)} & found.keys()
        if held and hash_of(key, unit.values) not in named:
            shared |= held
    return [text for k, text in found.items() if k not in shared], len(shared)


def with_equal(target: Target, units: Collection[Unit], key: bytes) -> list[Unit]:
    """Rows of a drop that are named, and those that are equal to them.

    A row of a corpus is equal whose columns that are read are. Raises GristmillError as `same` of
    `Forgets`.
    """
    own, every = {hash_of(key, unit.values) for unit in units}, target.units()
    found = {(each.file, each.row) for each in every if hash_of(key, each.values) in own}
    if target.how.same is not None:
        found |= target.how.same(target.root, target.drop, found)
    return [each for each in target.units() if (each.file, each.row) in found]

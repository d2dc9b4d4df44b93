"""The rules for a meta object and a step line, in pure Python; and what reading a run found.

The fast scanner leaves each line that it is not sure of to `parse_step`, and tests compare both.
Finding a drop imports this module, and needs no decompressor.

Source: docs/formats/macroxue.md#json-rules and the headings behind it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.macroxue.format.files import MAX_NAMES, STANDARD_NAMES
from gristmill.macroxue.format.rows import MOVES, Rows
from gristmill.macroxue.rules.game import INT32_MAX, INT32_MIN, MAX_RANK, board_score
from gristmill.untrusted.json_text import is_deeper

_U8, _U32, _U64 = (1 << 8) - 1, (1 << 32) - 1, (1 << 64) - 1

_MAX_DEPTH = 256
"""Levels of nesting; without a limit the rule would depend on the stack of the interpreter."""

_MAX_VALUES = 1 << 18
"""Brackets and commas of a text: a value takes up to a hundred times its bytes as an object."""

_BLANK = b" \t\r\n\x0b\x0c"


class RuleBroken(ValueError):
    """A line or meta object breaks a rule; the text is the rule. The caller adds file and line."""


class _Number(str):
    """The text of a JSON number; the text shows whether it is an integer."""

    __slots__ = ()


_Pairs = tuple[tuple[str, Any], ...]


def _constant(name: str) -> NoReturn:
    raise RuleBroken(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=_Number, parse_float=_Number, parse_constant=_constant
)


def _object(octets: bytes) -> _Pairs:
    """The pairs of a JSON object, in order and with repeats; a nested object is a tuple too."""
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RuleBroken(f"not UTF-8 at byte {error.start}") from error
    if is_deeper(octets, _MAX_DEPTH):
        raise RuleBroken(f"nested deeper than {_MAX_DEPTH} levels")
    if sum(octets.count(mark) for mark in (b"[", b"{", b",")) > _MAX_VALUES:
        raise RuleBroken(f"more than {_MAX_VALUES} values")
    text = text.strip(" \t\r\n")
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        raise RuleBroken(f"not JSON: {error.msg} at character {error.pos}") from error
    if end != len(text):
        raise RuleBroken(f"text after the JSON value at character {end}")
    # The decoder makes a tuple of an object, a list of an array, and neither of a scalar.
    if not isinstance(value, tuple):
        raise RuleBroken("not a JSON object")
    return value


def _known(pairs: _Pairs, keys: frozenset[str]) -> dict[str, Any]:
    """The values of the known keys; other keys are skipped, whatever they hold."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in keys:
            if key in values:
                raise RuleBroken(f"key {key!r} stands twice")
            values[key] = value
        elif not key.isascii():
            _text("a key", key)
    return values


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, _Number):
        raise RuleBroken(f"{what} must be a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RuleBroken(f"{what} holds half of a surrogate pair") from error
    return value


def _unsigned(what: str, value: Any, most: int) -> int:
    # A JSON number of digits has no sign, no fraction and no exponent. The length is limited
    # because int() raises an error of its own for thousands of digits.
    if not (isinstance(value, _Number) and value.isdigit() and len(value) <= 20):
        raise RuleBroken(f"{what} must be an integer 0..{most}")
    number = int(value)
    if number > most:
        raise RuleBroken(f"{what} must be an integer 0..{most}")
    return number


def _optional(values: dict[str, Any], key: str, most: int) -> int | None:
    value = values.get(key)
    return None if value is None else _unsigned(key, value, most)


@dataclass(frozen=True, slots=True)
class Step:
    """One step line (docs/formats/macroxue.md#step-object).

    board_eval: its score; fits int32.
    seed, step_index, max_rank: None if the key is absent or null.
    evs: four expected values in the order of the moves; None if it is not a number.
    """

    board: tuple[int, ...]
    board_eval: int
    move: int
    seed: int | None
    step_index: int | None
    max_rank: int | None
    valuation_type: str
    evs: tuple[float | None, ...]
    unknown_branches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Meta:
    """One meta object (docs/formats/macroxue.md#meta-object).

    max_rank: None if the key is absent or null.
    depth: None unless an integer of at most 9 digits.
    seconds: None unless a finite number.
    """

    seed: int
    num_moves: int
    score: int
    max_tile: int
    max_rank: int | None
    depth: int | None
    seconds: float | None


_STEP_KEYS = frozenset(
    ["board", "move", "seed", "step_index", "max_rank", "valuation_type", "branch_evs"]
)
_META_KEYS = frozenset(["seed", "num_moves", "score", "max_tile", "max_rank"])
_MOVE_DIR = {name: i for i, name in enumerate(MOVES)}


def _board(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) != 16:
        raise RuleBroken("board must be an array of exactly 16 ranks")
    ranks = tuple(_unsigned(f"board[{i}]", rank, _U8) for i, rank in enumerate(value))
    if max(ranks) > MAX_RANK:
        raise RuleBroken(f"board holds rank {max(ranks)}: board_eval knows ranks up to {MAX_RANK}")
    return ranks


def _branches(value: Any) -> tuple[tuple[float | None, ...], tuple[str, ...]]:
    if not isinstance(value, tuple):
        raise RuleBroken("branch_evs must be an object of numbers and nulls")
    evs: list[float | None] = [None] * 4
    unknown = []
    for name, ev in value:
        number = None
        if isinstance(ev, _Number):
            number = float(ev)
            if math.isinf(number):
                raise RuleBroken(f"branch_evs[{name[:40]!r}]: {ev[:40]} is out of range")
        elif ev is not None:
            raise RuleBroken(f"branch_evs[{name[:40]!r}] must be a number or null")
        if name in _MOVE_DIR:
            evs[_MOVE_DIR[name]] = number
        else:
            unknown.append(_text("a branch name", name))
    return tuple(evs), tuple(unknown)


def parse_step(line: bytes) -> Step | None:
    """Parse one step line. Returns None for a blank line. Raises RuleBroken."""
    if not line.strip(_BLANK):
        return None
    values = _known(_object(line), _STEP_KEYS)
    board = _board(values.get("board"))
    move = values.get("move")
    if not isinstance(move, str) or move not in _MOVE_DIR:
        raise RuleBroken('move must be "up", "down", "left" or "right"')
    evs: tuple[float | None, ...] = (None,) * 4
    unknown: tuple[str, ...] = ()
    if "branch_evs" in values:
        evs, unknown = _branches(values["branch_evs"])
    name = values.get("valuation_type")
    step = Step(
        board=board,
        board_eval=board_score(board),
        move=_MOVE_DIR[move],
        seed=_optional(values, "seed", _U64),
        step_index=_optional(values, "step_index", _U32),
        max_rank=_optional(values, "max_rank", _U8),
        valuation_type="search" if name is None else _text("valuation_type", name),
        evs=evs,
        unknown_branches=unknown,
    )
    if not INT32_MIN <= step.board_eval <= INT32_MAX:
        raise RuleBroken(f"board_eval {step.board_eval} overflows int32")
    return step


def parse_meta(octets: bytes) -> Meta:
    """Parse the text of a meta file. Raises RuleBroken."""
    pairs = _object(octets)
    values = _known(pairs, _META_KEYS)
    for key in ("seed", "num_moves", "score", "max_tile"):
        if key not in values:
            raise RuleBroken(f"key {key!r} is missing")
    extras = dict(pairs)
    depth, seconds = extras.get("depth", ""), extras.get("seconds")
    has_depth = isinstance(depth, _Number) and depth.isdigit() and len(depth) < 10
    elapsed = float(seconds) if isinstance(seconds, _Number) else math.inf
    return Meta(
        seed=_unsigned("seed", values["seed"], _U64),
        num_moves=_unsigned("num_moves", values["num_moves"], _U64),
        score=_unsigned("score", values["score"], _U64),
        max_tile=_unsigned("max_tile", values["max_tile"], _U32),
        max_rank=_optional(values, "max_rank", _U8),
        depth=int(depth) if has_depth else None,
        seconds=elapsed if math.isfinite(elapsed) else None,
    )


class FileDigest(NamedTuple):
    """Size in bytes and hex sha256 of a raw file."""

    size: int
    hex: str


@dataclass
class RawDigest:
    """Size and sha256 of a raw file, of the bytes that were read."""

    size: int = 0
    sha256: hashlib._Hash = field(default_factory=hashlib.sha256)

    def update(self, octets: bytes) -> None:
        """Count the next bytes of the file."""
        self.size += len(octets)
        self.sha256.update(octets)

    @property
    def hex(self) -> str:
        """The sha256 in hex."""
        return self.sha256.hexdigest()


@dataclass
class RunFacts:
    """Facts of a run that was read; at most 20 names of unknown branches."""

    meta: Meta
    meta_file: RawDigest | FileDigest
    steps_file: RawDigest | FileDigest
    rows: int = 0
    legal_rows: int = 0
    kinds: Counter[int] = field(default_factory=Counter)
    ranks: Counter[int] = field(default_factory=Counter)
    unknown_branches: Counter[str] = field(default_factory=Counter)
    rows_with: Mapping[str, int] = field(default_factory=dict)

    def count(self, rows: Rows) -> None:
        """Count the next rows, their types and ranks."""
        self.rows += len(rows)
        self.legal_rows += int(np.count_nonzero(rows["ev_legal"]))
        for column, counts in (("valuation_type", self.kinds), ("max_rank", self.ranks)):
            for value, count in enumerate(np.bincount(rows[column]).tolist()):
                if count:
                    counts[value] += count


_BYTES = 32
"""Longest name that the scanner reads itself."""

# JSON may spell these characters as they are.
_PLAIN = re.compile(rf"[ !#-\[\]-~]{{0,{_BYTES}}}")


class TooManyNames(GristmillError):
    """More names than ids of `valuation_type`: an error of the drop, not of one run."""


@dataclass
class Names:
    """The valuation names by id: the three standard names, then others as they occur."""

    known: list[str] = field(default_factory=lambda: list(STANDARD_NAMES))
    _plain: npt.NDArray[np.uint8] = field(default_factory=lambda: _plain_names([]))

    def id_of(self, name: str) -> int:
        """The id of a name; a new name gets the next id. Raises TooManyNames."""
        if name not in self.known:
            if len(self.known) == MAX_NAMES:
                raise TooManyNames(
                    f"valuation_type {name[:40]!r} would be name {MAX_NAMES + 1}, but a pack has at"
                    f" most {MAX_NAMES}: pack fewer drops together"
                )
            self.known.append(name)
            self._plain = _plain_names(self.known)
        return self.known.index(name)

    def plain(self) -> npt.NDArray[np.uint8]:
        """The names that are not standard as `fast_scanner.scan` takes them."""
        return self._plain


def _plain_names(known: list[str]) -> npt.NDArray[np.uint8]:
    """uint8 [M, 34]: length, id and bytes of each name that JSON spells as it is; not the three."""
    plain = [
        bytes([len(name), number]) + name.encode().ljust(_BYTES, b"\0")
        for number, name in enumerate(known)
        if number >= len(STANDARD_NAMES) and _PLAIN.fullmatch(name)
    ]
    return np.frombuffer(b"".join(plain), np.uint8).reshape(-1, _BYTES + 2)

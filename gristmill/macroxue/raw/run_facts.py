"""What reading a raw run found; apart, since finding a drop needs no decompressor."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.format.valuation_types import MAX_NAMES, STANDARD_NAMES
from gristmill.macroxue.raw.strict_parser import Meta


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

"""What reading a raw run found, and the sizes and digests of its files.

See also `read_run.py` and `read_steps.py`: what reads a run. Finding a drop needs these types and
no decompressor.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.raw.strict_parser import Meta


class FileDigest(NamedTuple):
    """Size in bytes and hex sha256 of a raw file."""

    size: int
    hex: str


@dataclass
class RawDigest:
    """Size and sha256 of a raw file, of the bytes that were read.

    size: bytes.
    """

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
    """Facts of a run that was read.

    meta_file, steps_file: sizes and hashes of the two files.
    rows, legal_rows: number of rows, and of rows with a legal bit.
    kinds, ranks: rows by value of valuation_type and of max_rank.
    unknown_branches: rows by branch name that is no direction; at most 20 names.
    rows_with: rows by kind of a warning that counts rows.
    """

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

"""Text that no row repeats: the text files that the installed packages bring, cut into bodies.

A corpus that is repeated flatters whatever remembers words. `Text(seed).body(n)` gives each
character once; after about 250 MB it begins again with other cuts.
"""

from __future__ import annotations

import math
import os
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from gristmill.synth.raw import COLUMNS

_SUFFIXES = {".py", ".pyi", ".md", ".txt", ".rst", ".h", ".hpp", ".c", ".cpp", ".js", ".yaml"}
_LEAST_FILE = 500
# Median and spread of the lengths of real bodies, in characters: query, reasoning, answer.
_LENGTHS = ((160, 0.8), (2200, 0.5), (1400, 0.6))


class Text:
    """A stream of distinct text from files in an order that the seed decides."""

    def __init__(self, seed: int = 1) -> None:
        self._dice = random.Random(seed)
        paths = [
            Path(folder, name)
            for folder, _, names in os.walk(sysconfig.get_paths()["purelib"])
            for name in names
            if Path(name).suffix in _SUFFIXES
        ]
        self._paths = sorted(paths)
        self._dice.shuffle(self._paths)
        self._files = self._read()
        self._text, self._at = "", 0
        self.passes = 0

    def _read(self) -> Iterator[str]:
        while True:
            for path in self._paths:
                text = path.read_text(encoding="utf-8", errors="ignore")
                if len(text) >= _LEAST_FILE:
                    # Another cut in every pass.
                    yield text[self._dice.randrange(_LEAST_FILE // 2) if self.passes else 0 :]
            self.passes += 1

    def body(self, length: int) -> str:
        """The next characters of the stream, `length` of them."""
        while len(self._text) - self._at < length:
            rest = [self._text[self._at :]]
            size = len(rest[0])
            while size < length + (1 << 20):
                rest.append(next(self._files))
                size += len(rest[-1])
            self._text, self._at = "\n".join(rest), 0
        self._at += length
        return self._text[self._at - length : self._at]

    def row(self) -> tuple[str, str, str]:
        """Query, reasoning and answer with lengths like those of real rows."""
        lengths = (
            max(20, int(self._dice.lognormvariate(math.log(median), spread)))
            for median, spread in _LENGTHS
        )
        query, reasoning, answer = map(self.body, lengths)
        return query, reasoning, answer


def raw_table(text: Text, rows: int, first: int = 0) -> pa.Table:
    """Raw rows with all columns, as PleIAs/SYNTH has them.

    text: gives the bodies.
    rows: number of rows.
    first: number of the first row, in its synth_id.
    """
    names = [f"bench_{number}" for number in range(first, first + rows)]
    bodies = list(zip(*(text.row() for _ in range(rows)), strict=True))
    known: dict[str, list[object]] = {
        "synth_id": [*names],
        "language": ["en"] * rows,
        "exercise": ["memorization"] * rows,
        "model": ["bench"] * rows,
        "query": list(bodies[0]),
        "synthetic_reasoning": list(bodies[1]),
        "synthetic_answer": list(bodies[2]),
        "words": [500] * rows,
    }
    columns = {
        name: pa.array(
            known.get(name, [None] * rows), pa.int64() if name == "words" else pa.string()
        )
        for name in COLUMNS
    }
    return pa.table(columns)

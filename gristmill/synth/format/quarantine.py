"""Rows that cannot be rendered: the file that lists them, and the error that names them.

Source: `docs/formats/synth.md#quarantine`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TextIO

from gristmill.contract import BadInput
from gristmill.printable import cut, printable

MOST_NAMED: Final = 20
"""Bad rows that an error names, at most."""
_MOST_ID: Final = 60
_MOST_RULE: Final = 160
_MOST_KEPT: Final = 1000
_TABLES: Final = "[synth.kd_shards], of the smoke test [synth_smoke.kd_shards],"
_NONE_GOOD: Final = "a shard without a good row is not built, whatever `bad_rows` is"


class BadRow(NamedTuple):
    """A row that cannot be rendered."""

    row: int
    synth_id: str | None
    rule: str

    def short(self) -> BadRow:
        """Return the same row with texts of a bounded length, for errors."""
        name = None if self.synth_id is None else cut(self.synth_id, _MOST_ID)
        return BadRow(self.row, name, cut(self.rule, _MOST_KEPT))

    def line(self) -> str:
        """Return the row as one line of an error."""
        rule = cut(printable(" ".join(self.rule.split())), _MOST_RULE)
        return f"row {self.row}, synth_id {self.synth_id!r}: {rule}"


def path(number: str) -> str:
    """Return the path of a quarantine file, relative to the root of the dataset."""
    return f"quarantine/quarantine_{number}.jsonl"


def packed(rows: Iterable[BadRow]) -> bytes:
    """Return bad rows as a part keeps them: a JSON array a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode("ascii")


class QuarantineWriter:
    """Writes a quarantine file in constant memory; the file begins with its first row."""

    def __init__(self, root: Path, number: str) -> None:
        self.rows = 0
        self._path, self._number = root / path(number), number
        self._file: TextIO | None = None

    def add(self, rows: bytes) -> None:
        """Append rows."""
        for line in rows.splitlines():
            if self._file is None:
                self._path.parent.mkdir()
                self._file = self._path.open("w", encoding="utf-8")
            row, synth_id, rule = json.loads(line)
            entry = {"shard": self._number, "row": row, "synth_id": synth_id, "rule": rule}
            self._file.write(json.dumps(entry) + "\n")
            self.rows += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


class BadRows:
    """Counts the bad rows of a shard over its parts, and keeps the first of them for an error."""

    def __init__(self, allowed: int, table: str = _TABLES) -> None:
        self.count = 0
        self._allowed, self._table = allowed, table
        self._first: list[BadRow] = []

    def add(self, count: int, first: Sequence[Sequence[Any]]) -> None:
        """Count the bad rows of the next part."""
        self.count += count
        self._first += [BadRow(*row) for row in first[: MOST_NAMED - len(self._first)]]

    @property
    def too_many(self) -> bool:
        """Whether there are more than may be set aside."""
        return self.count > self._allowed

    def check(self, shard: Path, good: int) -> None:
        """Raise BadInput with the first rows and their number where they are too many, or all."""
        if not self.too_many and (good or not self.count):
            return
        first = self._first[0]
        if self.count == 1:
            cure = "correct the row"
            cure += f", or {self._set_aside()}" if good else f": {_NONE_GOOD}"
            rule = f"synth_id {first.synth_id!r}: {first.rule} ({cure})"
            raise BadInput(shard, rule, first.row)
        if not good:
            rule = f"none of {self.count:,} rows can be rendered: correct them, or get the file"
            raise self._listed(shard, f"{rule} again: {_NONE_GOOD}:")
        raise self._listed(
            shard, f"{self.count:,} rows cannot be rendered: correct them, or {self._set_aside()}:"
        )

    def _set_aside(self) -> str:
        return (
            f"set such rows aside by `bad_rows = {self.count}` below {self._table} in "
            f"gristmill.toml; it is {self._allowed}"
        )

    def _listed(self, shard: Path, rule: str) -> BadInput:
        """The error for a rule, with the first rows that break it."""
        lines = [rule, *(f"  {row.line()}" for row in self._first)]
        if more := self.count - len(self._first):
            lines.append(f"  and {more:,} more of the {self.count:,} rows")
        return BadInput(shard, "\n".join(lines), self._first[0].row)

"""Refused records of a split: the file that lists them, and the error where they are too many.

Source: `docs/formats/reasoning.md#refused-records`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

from gristmill.contract import BadInput
from gristmill.printable import cut, printable
from gristmill.reasoning.raw.flatten import Unfit

_MOST_NAMED: Final = 20
_MOST_RULE: Final = 160
_MOST_KEPT: Final = 1000


class Refused:
    """Writes the refused records of a split; the file begins with the first one.

    path: of the file that lists them.
    most: how many may be set aside.
    drop: that the raw files are in.

    reasons: number of records by reason.

    Use it as a context manager. Memory does not grow with the number of records.
    """

    def __init__(self, path: Path, most: int, drop: Path) -> None:
        self.reasons: Counter[str] = Counter()
        self.path = path
        self._most = most
        self._drop = drop
        self._file: TextIO | None = None
        self._first: list[tuple[str, int, str]] = []

    @property
    def count(self) -> int:
        """Number of refused records."""
        return self.reasons.total()

    def add(self, raw: Path, row: int, unfit: Unfit) -> None:
        """Note a record.

        raw: the file that it is in.
        row: its row, from 1.
        unfit: why it is refused.
        """
        rule = cut(printable(" ".join(unfit.rule.split())), _MOST_KEPT)
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("x", encoding="ascii")
        name = raw.relative_to(self._drop).as_posix()
        entry = {"reason": unfit.reason, "file": name, "row": row, "rule": rule}
        self._file.write(json.dumps(entry) + "\n")
        self.reasons[unfit.reason] += 1
        if len(self._first) < _MOST_NAMED:
            self._first.append((name, row, rule))

    def check(self, kept: int) -> None:
        """Raise BadInput with the first records where they are too many, or all.

        kept: how many records of the split are not refused.
        """
        is_all = not kept
        if not self.count or (self.count <= self._most and not is_all):
            return
        name, row, rule = self._first[0]
        raw = self._drop / name
        advice = "no record of the split is left: correct the drop, or take the file out"
        if not is_all:
            advice = (
                "correct the drop, or set such records aside with [reasoning.normalized] bad_rows, "
                f"which is {self._most}"
            )
        if self.count == 1:
            raise BadInput(raw, f"{rule} ({advice})", row)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        if not is_all:
            advice = f"{advice} and must be {self.count}"
        lines = [f"{self.count:,} records are refused ({reasons}): {advice}:"]
        lines += [
            f"  {named}:{place}: {cut(text, _MOST_RULE)}" for named, place, text in self._first
        ]
        if more := self.count - len(self._first):
            lines.append(f"  and {more:,} more")
        raise BadInput(raw, "\n".join(lines), row)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

"""The refused records of a split, and the pieces of its files that workers read.

What is listed of refused records, and when there are too many. One that a stated rule of its corpus
leaves out is listed, too, but is not damage. Source: `docs/formats/reasoning.md#refused-records`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import tee
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TextIO

from gristmill.contract import BadInput
from gristmill.corpora.raw.rows import Piece, pieces
from gristmill.corpora.raw.texts import CURES, Unfit, is_left_out
from gristmill.printable import cut, printable
from gristmill.run.parts import Bytes, Made, PartStore, run_streams
from gristmill.settings.tables import FILE
from gristmill.untrusted.files import LinkRule

_MOST_NAMED: Final = 20
_MOST_RULE: Final = 160
_MOST_KEPT: Final = 1000
_ALL_LISTED: Final = ("evidence", "leak")
"""Rules of which every record is listed; of others, which may leave out most, the first."""
Leaks = Callable[[Sequence[Any]], Sequence[str]]
"""Takes rows, and returns of each which question of a set it holds, empty where none."""


class _Damage:
    """Damaged records of a file or a split: their number by reason, and the first of them."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self._cures: dict[str, None] = {}
        self._first: list[tuple[Path, str, int, str]] = []

    def add(self, raw: Path, name: str, row: int, reason: str, rule: str, cure: str) -> None:
        self.reasons[reason] += 1
        if cure and cure not in rule:
            self._cures[cure] = None
        if len(self._first) < _MOST_NAMED:
            self._first.append((raw, name, row, rule))

    def error(self, advice: str) -> BadInput:
        """Names the first records. There is one at least."""
        raw, _, row, rule = self._first[0]
        advice = "; ".join([advice, *self._cures])
        count = self.reasons.total()
        if count == 1:
            return BadInput(raw, f"{rule} ({advice})", row)
        lines = [f"{count:,} records are refused ({_listed(self.reasons)}): {advice}:"]
        lines += [
            f"  {name}:{place}: {cut(text, _MOST_RULE)}" for _, name, place, text in self._first
        ]
        if more := count - len(self._first):
            lines.append(f"  and {more:,} more")
        return BadInput(raw, "\n".join(lines), row)


class Refused:
    """Writes the refused records of a split; the file begins with the first one.

    most: how many damaged ones may be set aside; `table` of gristmill.toml says it.
    cures: what helps against a reason; an error names those of its records.
    left_out: number of records that a rule of the corpus leaves out, by reason.
    listed: number of records in the file: of most rules the first 20.

    Use it as a context manager. Memory does not grow with the number of records.
    """

    def __init__(
        self,
        path: Path,
        most: int,
        drop: Path,
        table: str = "[reasoning.normalized]",
        cures: Mapping[str, str] = CURES,
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self.listed = 0
        self.path = path
        self._most, self._table, self._cures = most, table, cures
        self.drop = drop
        self._file: TextIO | None = None
        self._split, self._by_file = _Damage(), defaultdict[Path, _Damage](_Damage)

    @property
    def damaged(self) -> Mapping[str, int]:
        """Number of damaged records by reason."""
        return self._split.reasons

    @property
    def count(self) -> int:
        """Number of records that were refused or left out."""
        return self._split.reasons.total() + self.left_out.total()

    def add(self, raw: Path, row: int, unfit: Unfit) -> None:
        """Note a record."""
        rule = cut(printable(" ".join(unfit.rule.split())), _MOST_KEPT)
        is_rule = is_left_out(unfit.reason)
        if is_rule:
            self.left_out[unfit.reason] += 1
            if unfit.reason not in _ALL_LISTED and self.left_out[unfit.reason] > _MOST_NAMED:
                return
        self.listed += 1
        name = raw.relative_to(self.drop).as_posix()
        entry = {"reason": unfit.reason, "file": name, "row": row, "rule": rule}
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("x", encoding="ascii")
        self._file.write(json.dumps(entry) + "\n")
        if is_rule:
            return
        for damage in (self._split, self._by_file[raw]):
            damage.add(raw, name, row, unfit.reason, rule, self._cures.get(unfit.reason, ""))

    def check_file(self, raw: Path, empty: int) -> None:
        """Raise BadInput for a file without a good row, however many may be set aside.

        raw: the file; none of its rows is a record with a text, or is left out by a rule.
        """
        advice = "no row of the file is good: correct the file, or take it out"
        if raw in self._by_file:
            raise self._by_file[raw].error(advice)
        if empty:
            raise BadInput(raw, f"has {empty:,} records, all without a text: {advice}")

    def check(self, raw: Path, kept: int) -> None:
        """Raise BadInput where too many records are damaged, or none is left."""
        count = self._split.reasons.total()
        if count > self._most:
            raise self._split.error(
                f"correct the drop, or set such records aside by `bad_rows = {count}` below "
                f"{self._table} in {self.drop / FILE}; it is {self._most}"
            )
        if self.count and not kept:
            reasons = _listed(Counter(self.damaged) + self.left_out)
            advice = "correct the drop, or take the files of the split out"
            raise BadInput(raw, f"no record of the split is left ({reasons}): {advice}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _listed(reasons: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())


class ListedRefused(Refused):
    """The refused records of a piece: row, reason and rule of each."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 0, path.parent)
        self.found: list[tuple[int, str, str]] = []

    def add(self, raw: Path, row: int, unfit: Unfit) -> None:
        """Note a record of the piece."""
        self.left_out[unfit.reason] += is_left_out(unfit.reason)
        self.found.append((row, unfit.reason, unfit.rule))


class PieceTask(NamedTuple):
    """A piece of a raw file to read. number: of the file."""

    path: Path
    number: int
    piece: Piece


class PieceRun(NamedTuple):
    """How pieces are read. scratch: folder for those that another process reads."""

    links: LinkRule
    parts: Callable[[], PartStore] | None
    workers: int
    scratch: Path


def until_damage(read: Callable[[], int]) -> dict[str, Any]:
    """Read the rows of a piece; returns the number of the last one, and what the file breaks."""
    try:
        return {"lines": read(), "error": None}
    except BadInput as raised:
        return {"lines": 0, "error": (raised.rule, raised.row)}


def read_pieces(
    read: Callable[[PieceTask], Made],
    files: Iterable[tuple[int, Path]],
    how: PieceRun,
    refused: Refused,
) -> Iterator[tuple[PieceTask, int, Mapping[str, bytes], Mapping[str, Any]]]:
    """Yield what the pieces of some files hold: the rows of the file before it, streams, state.

    read: what a worker does; its streams have `refused` of `ListedRefused`, its summary what
        `until_damage` returns. files: with their numbers.
    """
    tasks, todo = tee(
        PieceTask(path, number, piece)
        for number, path in files
        for piece in pieces(path, how.links)
    )
    named = ((f"{each.number}-{each.piece.begin}", each) for each in tasks)
    store, before = how.parts() if how.parts is not None else None, 0
    made = run_streams(read, named, store, how.workers, scratch=how.scratch)
    for (streams, state), task in zip(made, todo, strict=False):
        before = before if task.piece.begin else 0
        held = defaultdict[str, list[Bytes]](list)
        for name, data in streams:
            held[name].append(data)
        whole = defaultdict(bytes, {name: b"".join(several) for name, several in held.items()})
        for row, reason, rule in json.loads(whole["refused"]):
            refused.add(task.path, before + row, Unfit(reason, rule))
        yield task, before, whole, state
        if state["error"] is not None:
            rule, row = state["error"]
            raise BadInput(task.path, rule, None if row is None else before + row)
        before += state["lines"]

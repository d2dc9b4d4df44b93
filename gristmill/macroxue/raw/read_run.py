"""One run from its raw pair to rows: chunks of lines through the scanner or the strict parser.

Cutting a drop into parts and putting them together is the business of `packer.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ctypes import c_float
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, GristmillError
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, Rows
from gristmill.macroxue.format.valuation_types import MAX_NAMES, STANDARD_NAMES
from gristmill.macroxue.raw.drops import RawDigest, RunFiles, gunzip, read_meta
from gristmill.macroxue.raw.strict_parser import Meta, RuleBroken, Step, parse_meta, parse_step

PAD = 128
"""Readable bytes behind the text; `scan.PAD`, which importing numba would tell."""

CHUNK_BYTES = 1 << 19
CHUNK_ROWS = 1 << 13
MAX_LINE_BYTES = 1 << 24
_MAX_NOTED_BRANCHES = 20
_U32 = (1 << 32) - 1

Scanner = Callable[
    [npt.NDArray[np.uint8], int, int, Rows, int, npt.NDArray[np.int64]], tuple[int, int, int]
]
"""The signature of `scan.scan`."""


class TooManyNames(GristmillError):
    """A name more than `valuation_type` may tell apart; no run is to blame, so it ends a pack."""


@dataclass
class Names:
    """Valuation names met so far, by id: search, tuple11, tuple10, then in order of meeting."""

    known: list[str] = field(default_factory=lambda: list(STANDARD_NAMES))

    def id_of(self, name: str) -> int:
        """The id of a name, a new one where it is met first."""
        if name not in self.known:
            if len(self.known) == MAX_NAMES:
                raise TooManyNames(
                    f"valuation_type {name[:40]!r} would be name {MAX_NAMES + 1}: a pack can tell"
                    f" {MAX_NAMES} apart; pack fewer drops together"
                )
            self.known.append(name)
        return self.known.index(name)


@dataclass
class RunFacts:
    """What is known of a run after reading it."""

    meta: Meta
    meta_file: RawDigest
    steps_file: RawDigest
    rows: int = 0
    legal_rows: int = 0
    kinds: Counter[int] = field(default_factory=Counter)
    ranks: Counter[int] = field(default_factory=Counter)
    unknown_branches: Counter[str] = field(default_factory=Counter)


def chunks_of_lines(files: RunFiles, digest: RawDigest) -> Iterator[tuple[bytearray, int]]:
    """(buffer, end): whole lines, each with its newline, and PAD bytes behind `end`.

    The buffer is used again for the next chunk. Raises BadInput for a line of
    more than MAX_LINE_BYTES.
    """
    buffer = bytearray(2 * CHUNK_BYTES + PAD)
    kept = 0
    for piece in gunzip(files.steps, digest, CHUNK_BYTES):
        if kept + len(piece) + 1 + PAD > len(buffer):
            if kept > MAX_LINE_BYTES:
                raise BadInput(files.steps, f"a line of more than {MAX_LINE_BYTES} bytes")
            buffer = buffer + bytearray(len(buffer))
        buffer[kept : kept + len(piece)] = piece
        end = buffer.rfind(b"\n", kept, kept + len(piece)) + 1
        kept += len(piece)
        if end:
            yield buffer, end
            buffer[: kept - end] = buffer[end:kept]
            kept -= end
    if kept:
        buffer[kept] = 10
        yield buffer, kept + 1


def put_step(rows: Rows, row: int, step: Step, state: npt.NDArray[np.int64], names: Names) -> None:
    """Write a parsed step as rows[row]; `state` as in `scan.scan` (docs/formats/macroxue.md#row-rules)."""
    index = int(state[1]) if step.step_index is None else step.step_index
    state[1] = min(index + 1, _U32)
    board = mask = legal = 0
    for i, rank in enumerate(step.board):
        board = board << 4 | min(rank, 15)
        mask |= (rank >= 16) << i
    for i, ev in enumerate(step.evs):
        legal |= (ev is not None) << i
    rows[row] = (
        state[0],
        index,
        board,
        step.board_eval,
        mask,
        step.move,
        names.id_of(step.valuation_type),
        legal,
        state[3] if step.max_rank is None else step.max_rank,
        state[2] if step.seed is None else step.seed & _U32,
        # As C casts: to the nearest, and 1e39 to infinity without complaint.
        tuple(0.0 if ev is None else c_float(ev).value for ev in step.evs),
    )


@dataclass
class _Reading:
    files: RunFiles
    names: Names
    sink: Callable[[Rows], None]
    scanner: Scanner | None
    facts: RunFacts
    state: npt.NDArray[np.int64]
    rows: Rows
    filled: int = 0
    lines: int = 0

    def flush(self) -> None:
        """Hand the rows filled so far to the sink and count what is in them."""
        rows = self.rows[: self.filled]
        if self.filled:
            self.facts.rows += self.filled
            self.facts.legal_rows += int(np.count_nonzero(rows["ev_legal"]))
            for column, counts in (
                ("valuation_type", self.facts.kinds),
                ("max_rank", self.facts.ranks),
            ):
                for value, count in enumerate(np.bincount(rows[column]).tolist()):
                    if count:
                        counts[value] += count
            self.sink(rows)
        self.filled = 0

    def take(self, buffer: bytearray, end: int) -> None:
        """Turn the lines of a chunk into rows."""
        text = np.frombuffer(buffer, np.uint8)
        at = 0
        while at < end:
            if self.filled == len(self.rows):
                self.flush()
            if self.scanner is not None:
                before = self.filled
                at, self.filled, _ = self.scanner(text, at, end, self.rows, before, self.state)
                self.lines += self.filled - before
                if at == end or self.filled == len(self.rows):
                    continue
            stop = buffer.index(b"\n", at, end) + 1
            self.take_strictly(bytes(buffer[at:stop]))
            at = stop

    def take_strictly(self, line: bytes) -> None:
        """Turn one line into a row by the strict rules, or raise BadInput naming it."""
        self.lines += 1
        try:
            step = parse_step(line)
        except RuleBroken as error:
            raise BadInput(self.files.steps, str(error), self.lines) from error
        if step is None:
            return
        put_step(self.rows, self.filled, step, self.state, self.names)
        self.filled += 1
        for branch in step.unknown_branches:
            name = branch[:40]
            if name in self.facts.unknown_branches or (
                len(self.facts.unknown_branches) < _MAX_NOTED_BRANCHES
            ):
                self.facts.unknown_branches[name] += 1


def read_run(
    files: RunFiles,
    run_id: int,
    names: Names,
    sink: Callable[[Rows], None],
    scanner: Scanner | None,
) -> RunFacts:
    """Read a run and give its rows (STEP_ROW_DTYPE, reused after the call) to `sink`.

    scanner: `scan.scan`, or None to take every line by the strict rules; the
        rows are the same. Raises BadInput naming file, line and rule.
    """
    meta_file, steps_file = RawDigest(), RawDigest()
    try:
        meta = parse_meta(read_meta(files.meta, meta_file))
    except RuleBroken as error:
        raise BadInput(files.meta, str(error)) from error
    state = np.array([run_id, 0, meta.seed & _U32, meta.max_rank or 0], np.int64)
    facts = RunFacts(meta, meta_file, steps_file)
    reading = _Reading(
        files, names, sink, scanner, facts, state, np.zeros(CHUNK_ROWS, STEP_ROW_DTYPE)
    )
    for buffer, end in chunks_of_lines(files, steps_file):
        reading.take(buffer, end)
    reading.flush()
    return facts


def notes_of(facts: RunFacts) -> list[dict[str, Any]]:
    """What deserves a warning in a run that is packed all the same (docs/formats/macroxue.md#warnings)."""
    notes: list[dict[str, Any]] = []
    if facts.rows == 0:
        notes.append({"kind": "empty_run"})
    if facts.rows != facts.meta.num_moves:
        notes.append(
            {"kind": "count_mismatch", "rows": facts.rows, "num_moves": facts.meta.num_moves}
        )
    if facts.unknown_branches:
        notes.append({"kind": "unknown_branches", "rows": dict(facts.unknown_branches)})
    if facts.rows and not facts.legal_rows:
        notes.append({"kind": "no_legal_branch"})
    return notes

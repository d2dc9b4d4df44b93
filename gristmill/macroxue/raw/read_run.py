"""One run from its two raw files to rows. Source: docs/formats/macroxue.md#row-rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from ctypes import c_float
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from gristmill.contract import BadInput
from gristmill.macroxue.format.rows import STEP_ROW_DTYPE, Rows
from gristmill.macroxue.raw.drops import RunFiles
from gristmill.macroxue.raw.strict_parser import (
    Names,
    RawDigest,
    RuleBroken,
    RunFacts,
    Step,
    parse_meta,
    parse_step,
)
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS

_READ_BYTES = 1 << 18
_MAX_META_BYTES = 1 << 20
_HEADER_BYTES = 1 << 17


def _read(path: Path, digest: RawDigest, folder: Path | None, links: LinkRule) -> Iterator[bytes]:
    with open_file(path, root=folder or path.parent, links=links, buffering=0) as file:
        while octets := file.read(_READ_BYTES):
            digest.update(octets)
            yield octets


def gunzip(
    path: Path,
    digest: RawDigest,
    most: int,
    folder: Path | None = None,
    links: LinkRule = REFUSE_LINKS,
) -> Iterator[bytes]:
    """The text of all members of a gzip file, in order, at most so many bytes in each item.

    Raises BadInput for a file that is empty, cut short or damaged, other bytes behind the last
    member, and much more text than its size explains.
    """
    size = 0
    for text in _members(path, _read(path, digest, folder, links), most):
        size += len(text)
        if size > LIMITS.unpacked(digest.size):
            rule = f"unpacks to more than {LIMITS.ratio} times its size"
            raise BadInput(path, f"{rule}: it looks like a decompression bomb")
        yield text


def _members(path: Path, reads: Iterable[bytes], most: int) -> Iterator[bytes]:
    decoder = None
    members = 0
    held = b""
    for read in chain(reads, [b""]):
        octets, held = held + read, b""
        while octets or (decoder is not None and not decoder.eof and not decoder.needs_input):
            if decoder is None:
                if read and len(octets) < _HEADER_BYTES:
                    # ISA-L misreads a header with several fields if two calls share it. The
                    # fields take 64 KiB and two texts.
                    held = octets
                    break
                decoder = IgzipDecompressor(flag=DECOMP_GZIP)
            try:
                text = decoder.decompress(octets, most)
            except IsalError as error:  # type: ignore[misc]  # the stub calls it an instance
                where = f"behind gzip member {members}" if members else "gzip"
                raise BadInput(path, f"{where}: {error}: fetch the file anew") from error
            octets = b""
            if text:
                yield text
            if decoder.eof:
                octets = decoder.unused_data
                members += 1
                decoder = None
    if decoder is not None:
        where = f"what stands behind gzip member {members}" if members else "the gzip stream"
        raise BadInput(path, f"{where} is cut short: fetch the file anew")
    if members == 0:
        raise BadInput(path, "0 bytes: not even an empty gzip file")


def read_meta(
    path: Path, digest: RawDigest, folder: Path | None = None, links: LinkRule = REFUSE_LINKS
) -> bytes:
    """The text of a meta file, unzipped if its name ends in .gz."""
    text, parts = bytearray(), _read(path, digest, folder, links)
    if path.name.endswith(".gz"):
        parts = gunzip(path, digest, _READ_BYTES, folder, links)
    for octets in parts:
        text += octets
        if len(text) > _MAX_META_BYTES:
            raise BadInput(path, f"a meta sidecar of more than {_MAX_META_BYTES} bytes")
    return bytes(text)


PAD = 128
"""Bytes behind the text that must be readable."""

BATCH_BYTES = 1 << 19
BATCH_ROWS = 1 << 13
MAX_LINE_BYTES = 1 << 24
_MAX_NOTED_BRANCHES = 20
_U32 = (1 << 32) - 1
# `parse_step` takes each of these lines as no step; millions of them come in one small file.
_SPACES = re.compile(rb"[ \t\r]")
_BLANK_LINES = re.compile(rb"(?:[ \t\r\x0b\x0c]*+\n)++")

_Octets = npt.NDArray[np.uint8]
Scanner = Callable[
    [_Octets, int, int, Rows, int, npt.NDArray[np.int64], _Octets], tuple[int, int, int]
]
"""The signature of `fast_scanner.scan`."""


def batches_of_lines(files: RunFiles, digest: RawDigest) -> Iterator[tuple[bytearray, int]]:
    """The lines of a steps file in batches: (buffer, end of the text in it).

    The text has whole lines, each with its newline, and PAD bytes behind it. The next batch
    overwrites the buffer. Raises BadInput for a line of more than MAX_LINE_BYTES, and as `gunzip`.
    """
    buffer = bytearray(2 * BATCH_BYTES + PAD)
    kept = 0
    for text in gunzip(files.steps, digest, BATCH_BYTES, files.folder, files.links):
        if kept + len(text) + 1 + PAD > len(buffer):
            if kept > MAX_LINE_BYTES:
                raise BadInput(files.steps, f"a line of more than {MAX_LINE_BYTES} bytes")
            buffer = buffer + bytearray(len(buffer))
        buffer[kept : kept + len(text)] = text
        end = buffer.rfind(b"\n", kept, kept + len(text)) + 1
        kept += len(text)
        if end:
            yield buffer, end
            buffer[: kept - end] = buffer[end:kept]
            kept -= end
    if kept:
        buffer[kept] = 10
        yield buffer, kept + 1


def put_step(rows: Rows, row: int, step: Step, state: npt.NDArray[np.int64], names: Names) -> None:
    """Write a parsed step as rows[row]; `state` is that of `fast_scanner.scan`."""
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
        # A cast in C rounds to nearest, and gives infinity for 1e39 without an error.
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
    blank: int = 0

    def flush(self) -> None:
        """Give the filled rows to the sink, and count them."""
        if self.filled:
            rows = self.rows[: self.filled]
            self.facts.count(rows)
            self.sink(rows)
        self.filled = 0

    def take(self, buffer: bytearray, end: int) -> None:
        """Turn a batch of lines into rows: text is buffer[:end]."""
        whole, text = WholeLines(buffer), np.frombuffer(buffer, np.uint8)
        at = 0
        while at < end:
            if self.filled == len(self.rows):
                self.flush()
            if self.scanner is not None:
                before = self.filled
                at, self.filled, _ = self.scanner(
                    text, at, end, self.rows, before, self.state, self.names.plain()
                )
                self.lines += self.filled - before
                if at == end or self.filled == len(self.rows):
                    continue
            if blank := _BLANK_LINES.match(buffer, at, end):
                count = buffer.count(b"\n", at, blank.end())
                self.lines, self.blank = self.lines + count, self.blank + count
                LIMITS.check_blank(self.blank, self.lines - self.blank, self.files.steps)
                at = blank.end()
                continue
            stop = buffer.index(b"\n", at, end) + 1
            fresh = self.scanner is not None and whole.starts is None
            if fresh and _SPACES.search(buffer, at, stop - 1):
                buffer, end = whole.squeeze(at, end, self.lines, PAD)
                text, at = np.frombuffer(buffer, np.uint8), 0
                continue
            self.take_strictly(whole.line(self.lines, at, stop))
            at = stop

    def take_strictly(self, line: bytes) -> None:
        """Turn one line into a row by the strict rules; BadInput names a line that breaks one."""
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
    """Read a run from its raw files.

    sink: gets the rows as STEP_ROW_DTYPE [N], which are overwritten after it returns.
    scanner: `fast_scanner.scan`, or None to parse each line strictly; the rows are the same.

    Raises BadInput, naming file, line and rule, and TooManyNames.
    """
    meta_file, steps_file = RawDigest(), RawDigest()
    try:
        meta = parse_meta(read_meta(files.meta, meta_file, files.folder, files.links))
    except RuleBroken as error:
        raise BadInput(files.meta, str(error)) from error
    state = np.array([run_id, 0, meta.seed & _U32, meta.max_rank or 0], np.int64)
    facts = RunFacts(meta, meta_file, steps_file)
    reading = _Reading(
        files, names, sink, scanner, facts, state, np.zeros(BATCH_ROWS, STEP_ROW_DTYPE)
    )
    for buffer, end in batches_of_lines(files, steps_file):
        reading.take(buffer, end)
    reading.flush()
    return facts


def notes_of(facts: RunFacts) -> list[dict[str, Any]]:
    """The warnings about a run that is packed: `kind` and further keys of warnings.jsonl."""
    notes: list[dict[str, Any]] = []
    if facts.rows == 0:
        notes.append({"kind": "empty_run"})
    if facts.rows != facts.meta.num_moves:
        counts = {"rows": facts.rows, "num_moves": facts.meta.num_moves}
        notes.append({"kind": "count_mismatch", **counts})
    if facts.unknown_branches:
        notes.append({"kind": "unknown_branches", "rows": dict(facts.unknown_branches)})
    if facts.rows and not facts.legal_rows:
        notes.append({"kind": "no_legal_branch"})
    notes += ({"kind": kind, "rows": rows} for kind, rows in facts.rows_with.items() if rows)
    return notes


@dataclass
class WholeLines:
    """The lines of a batch as they are in the file; errors name places in them.

    starts: int64, where each line begins in it from the line `first` on, once they were squeezed.
    """

    buffer: bytearray
    starts: npt.NDArray[np.int64] | None = None
    first: int = 0

    def squeeze(self, at: int, end: int, first: int, padding: int) -> tuple[bytearray, int]:
        """Lines without spaces between tokens, for the scanner, and the end of their text."""
        from gristmill.macroxue.raw.json_spaces import squeezed

        self.first = first
        buffer, size, self.starts = squeezed(self.buffer, at, end, padding)
        return buffer, size

    def line(self, number: int, at: int, stop: int) -> bytes:
        """A line as it is in the file."""
        if self.starts is not None:
            at, stop = self.starts[number - self.first : number - self.first + 2].tolist()
        return bytes(self.buffer[at:stop])

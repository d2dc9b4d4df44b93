"""What laws share: files whose damage is a violation, and rows that agree with their sidecar."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gristmill.chess.format import folders
from gristmill.chess.read.phases import replay_phases
from gristmill.chess.read.row_batches import RowBatch, read_batch, row_ranges
from gristmill.contract import BadInput, Violation
from gristmill.families import Subject

Law = Callable[..., Iterator[Violation]]
# Errors that a damaged file can cause.
_MALFORMED = (
    OSError, ValueError, TypeError, AttributeError, IndexError, RecursionError, BadInput
)  # fmt: skip


def law(check: Law) -> Law:
    """Decorate a law: its violations name paths relative to the artifact, and it raises nothing.

    check: generator of violations; takes a subject, or the artifact's folder.
    """

    def without_errors(of: Subject | Path, path: Path) -> Iterator[Violation]:
        try:
            yield from check(of)
        except KeyError as error:
            yield Violation("artifact_complete", path.name, f"a file has no {error}")
        except _MALFORMED as error:
            yield Violation("artifact_complete", path.name, f"{type(error).__name__}: {error}")

    @wraps(check)
    def with_relative_paths(of: Subject | Path) -> Iterator[Violation]:
        path = of.folder if isinstance(of, Subject) else of
        for violation in without_errors(of, path):
            where = violation.where.replace(f"{path}/", "")
            yield Violation(violation.law, where, violation.found.replace(f"{path}/", ""))

    return with_relative_paths


def read_json(path: Path) -> tuple[dict[str, Any], list[Violation]]:
    """Read a JSON object that has at least one key."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return {}, [Violation("readable_json", str(path), repr(error))]
    if not isinstance(value, dict) or not value:
        return {}, [Violation("readable_json", str(path), "not a JSON object, or an empty one")]
    return value, []


def missing_keys(value: dict[str, Any], where: Path, *names: str) -> list[Violation]:
    """Check that a JSON object has some keys."""
    return [
        Violation("has_key", str(where), f"has no {name!r}") for name in names if name not in value
    ]


def difference(name: str, where: Path | str, found: Any, recorded: Any) -> list[Violation]:
    """Check that a value is the recorded one."""
    if found == recorded:
        return []
    return [Violation(name, str(where), f"found {found!r}, recorded {recorded!r}")]


def count_csv_rows(path: Path) -> int:
    """Count the rows of a CSV file, the head included."""
    with open_csv(path) as file:
        return sum(1 for _ in csv.reader(file))


@contextmanager
def open_csv(path: Path) -> Iterator[TextIO]:
    """Open a CSV file for `csv.reader`, with fields of any length.

    Raises ValueError or OSError for a file that cannot be read.
    """
    # An error text may be as long as its PGN. The limit holds for the process.
    limit = csv.field_size_limit(max(path.stat().st_size + 1, 1 << 17))
    try:
        with path.open(newline="", encoding="utf-8") as file:
            yield file
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(limit)


SIDECAR_LAWS = "phases_rederived, rows_as_sidecar"
"""The laws that need the sidecar."""
_RANGE_BYTES = 4 << 20


def check_rows(
    jsonl: Path, root: Path, name: str, *, is_ours: bool, has_sidecar: bool = True
) -> Iterator[Violation | RowBatch]:
    """Check a JSONL file against its sidecar, one byte range after the other.

    is_ours: its record has the hashes, so that no game is replayed.
    has_sidecar: False where another program wrote the rows, and no sidecar (default True).

    Yields each batch of rows that could be read, and the violations `has_sidecar`,
    `moves_packed`, `phases_rederived`, `rows_counted` and `rows_as_sidecar`.
    """
    try:
        beside = folders.Sidecar.open(root, name)
        if beside is None and has_sidecar:
            yield Violation("has_sidecar", str(jsonl), "no sidecar")
        rows = 0
        for byte_range in row_ranges(jsonl, _RANGE_BYTES, beside):
            batch = read_batch(byte_range, by_keys=True)
            rows += len(batch.columns)
            # Without a sidecar the codes are those of a replay already.
            if beside and not is_ours:
                yield from _check_phases(batch, jsonl)
            if beside and beside.has_moves:
                yield from _check_moves(batch, beside)
            yield batch
        if beside and beside.has_moves:
            sizes = [(folders.moves_file(root, name), beside.plies * folders.MOVE.itemsize)]
            if name != "games":
                sizes.append((folders.spans_file(root, name), rows * folders.SPAN.itemsize))
            for file, size in sizes:
                yield from difference("moves_packed", file, file.stat().st_size, size)
        if beside:
            yield from difference("rows_counted", jsonl, rows, beside.games)
    except (BadInput, OSError) as error:
        yield Violation("rows_as_sidecar", str(jsonl), str(error))


def _check_moves(batch: RowBatch, beside: folders.Sidecar) -> Iterator[Violation]:
    """The packed moves are those of the rows, and in a dataset the spans lead to them."""
    from gristmill.chess.kernels import rowshape

    first, ply, plies = batch.byte_range.first, batch.byte_range.ply, batch.columns[:, rowshape.N]
    agrees = np.array_equal(beside.moves(ply, len(batch.moves)), batch.moves)
    if beside.rows != "games":
        spans = folders.spans_of(plies, batch.columns[:, rowshape.WINNER], ply)
        agrees = agrees and np.array_equal(beside.spans(first, len(plies)), spans)
    if not agrees:
        place = f"{beside.rows}: rows from byte {batch.byte_range.start} on"
        yield Violation("moves_packed", place, "packed moves or spans are not those of the rows")


def _check_phases(batch: RowBatch, where: Path) -> Iterator[Violation]:
    from gristmill.chess.kernels import rowshape

    codes = replay_phases(batch.moves, batch.columns[:, rowshape.N])
    wrong = np.flatnonzero(codes != batch.codes)
    if len(wrong):
        place = f"{where}: ply {wrong[0]} of the rows from byte {batch.byte_range.start} on"
        yield Violation("phases_rederived", place, f"{len(wrong)} codes differ from the replay")

"""Laws of JSONL rows with a sidecar: rows and sidecar agree, phases are those of a replay.

Source: docs/formats/chess.md#laws
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.chess.format import sidecar
from gristmill.chess.laws.files import difference
from gristmill.chess.read.phases import replay_phases
from gristmill.chess.read.row_batches import RowBatch, read_batch, row_ranges
from gristmill.contract import BadInput, Violation

SIDECAR_LAWS = "phases_rederived, rows_as_sidecar"
"""The laws that need the sidecar."""
_RANGE_BYTES = 4 << 20
# With `sampled`: games replayed in each byte range, and the seed that draws them.
_REPLAYED, _SEED = 64, 20200601


def check_rows(
    jsonl: Path, root: Path, name: str, sampled: bool, has_sidecar: bool = True
) -> Iterator[Violation | RowBatch]:
    """Check a JSONL file against its sidecar, one byte range after the other.

    jsonl: the file.
    root: folder of the artifact with the sidecar.
    name: name of the rows in the sidecar, such as `games` or `train`.
    sampled: replay 64 games of each range instead of all. All other laws hold for every row.
    has_sidecar: False where another program wrote the rows, and no sidecar (default True).

    Yields each batch of rows that could be read, and the violations `has_sidecar`,
    `moves_packed`, `phases_rederived`, `rows_counted` and `rows_as_sidecar`.
    """
    try:
        beside = sidecar.Sidecar.open(root, name)
        if beside is None and has_sidecar:
            yield Violation("has_sidecar", str(jsonl), "no sidecar")
        rows = 0
        for byte_range in row_ranges(jsonl, _RANGE_BYTES, beside):
            batch = read_batch(byte_range)
            rows += len(batch.columns)
            yield from _check_phases(batch, jsonl, sampled)
            if beside and beside.has_moves:
                yield from _check_moves(batch, beside)
            yield batch
        if beside and beside.has_moves:
            sizes = [(sidecar.moves_file(root, name), beside.plies * sidecar.MOVE.itemsize)]
            if name != "games":
                sizes.append((sidecar.spans_file(root, name), rows * sidecar.SPAN.itemsize))
            for file, size in sizes:
                yield from difference("moves_packed", file, file.stat().st_size, size)
        if beside:
            yield from difference("rows_counted", jsonl, rows, beside.games)
    except (BadInput, OSError) as error:
        yield Violation("rows_as_sidecar", str(jsonl), str(error))


def _check_moves(batch: RowBatch, beside: sidecar.Sidecar) -> Iterator[Violation]:
    """The packed moves are those of the rows, and in a dataset the spans lead to them."""
    from gristmill.chess.kernels import rowshape

    first, ply, plies = batch.byte_range.first, batch.byte_range.ply, batch.columns[:, rowshape.N]
    agrees = np.array_equal(beside.moves(ply, len(batch.moves)), batch.moves)
    if beside.rows != "games":
        spans = sidecar.spans_of(plies, batch.columns[:, rowshape.WINNER], ply)
        agrees = agrees and np.array_equal(beside.spans(first, len(plies)), spans)
    if not agrees:
        place = f"{beside.rows}: rows from byte {batch.byte_range.start} on"
        yield Violation("moves_packed", place, "packed moves or spans are not those of the rows")


def _check_phases(batch: RowBatch, where: Path, sampled: bool) -> Iterator[Violation]:
    from gristmill.chess.kernels import rowshape

    plies = batch.columns[:, rowshape.N]
    picked = np.full(len(plies), True)
    if sampled and len(plies) > _REPLAYED:
        picked[:] = False
        random = np.random.default_rng([_SEED, batch.byte_range.start])
        picked[random.choice(len(plies), _REPLAYED, replace=False)] = True
    of_picked = np.repeat(picked, plies)
    codes = replay_phases(batch.moves[of_picked], plies[picked])
    wrong = np.flatnonzero(codes != batch.codes[of_picked])
    if len(wrong):
        ply = int(np.flatnonzero(of_picked)[wrong[0]])
        place = f"{where}: ply {ply} of the rows from byte {batch.byte_range.start} on"
        yield Violation("phases_rederived", place, f"{len(wrong)} codes differ from the replay")

"""Notes on the games of `macroxue/pack`: what is unusual in them, but breaks no law.

See also `games.py`: the laws of games, for which a pack is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.macroxue.format.metadata_db import signed64
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.laws.report import Finder, fresh, playable, run_facts
from gristmill.macroxue.read.step_stream import Batch, StepStream
from gristmill.macroxue.rules.moves import legal_moves, move
from gristmill.macroxue.rules.true_ranks import true_ranks


def game_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in the games of a pack or pool; the check `noteworthy` warns of it.

    path: folder of the pack or pool.

    Yields a violation for each note:
    ranks_unknown: rows whose ranks above 65536 cannot be found.
    gaps: runs whose step_index does not count 0, 1, 2, ...
    started_late: runs that do not start with the two tiles of a new game.
    score_differs: runs whose rewards do not sum to `max_score`.
    search_legality: search rows with an expected value for a move that the board does not allow.
        Tuple rows have a value for each move, and a search may leave a legal move out.
    chosen_ev: rows whose chosen move has no legal bit; the tokenizer of the original stops there.
    files_open: the files can be read, and agree with metadata.db.
    Source: docs/formats/macroxue.md#game-notes.
    """
    try:
        stream = StepStream(path)
        names = read_valuation_types(path / "valuation_types.json")
        search = names.index("search") if "search" in names else len(names)
        finder = Finder()
        for batch in stream.batches(whole_runs=True):
            yield from _batch_notes(stream, batch, search, finder)
        yield from finder.rest()
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


def _batch_notes(
    stream: StepStream, batch: Batch, search: int, finder: Finder
) -> Iterator[Violation]:
    rows = batch.rows
    known = true_ranks(rows, batch.run_starts())
    moves = playable(rows)
    _, reward, _ = move(known.ranks, moves)
    yield from finder.rows(
        "ranks_unknown",
        batch,
        known.unknown,
        "ranks above 65536 cannot be found (max_rank {max_rank})",
    )
    legal = legal_moves(known.ranks)
    stated = rows["ev_legal"]
    yield from finder.rows(
        "search_legality",
        batch,
        (rows["valuation_type"] == search) & (stated & ~legal != 0) & ~known.unknown,
        "ev_legal {ev_legal} has a move that the board does not allow",
    )
    chosen = (stated >> moves) & 1
    yield from finder.rows(
        "chosen_ev", batch, chosen == 0, "the chosen move {move} has no expected value"
    )
    for index, own, points, gapless in run_facts(batch, reward):
        run = stream.runs[index]
        if not gapless:
            yield from finder.run("gaps", run.id, "step_index does not count 0, 1, 2, ...")
        if not fresh(known.ranks[own.start]):
            tiles = int(np.count_nonzero(known.ranks[own.start]))
            yield from finder.run("started_late", run.id, f"starts with {tiles} tiles")
        if signed64(points) != run.max_score:
            yield from finder.run(
                "score_differs", run.id, f"rewards sum to {points}, max_score is {run.max_score}"
            )

"""What is worth knowing of the games of a pack, though no fault of it.

What a pack is refused for stands in `game_laws.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.contract import BadInput, Violation
from gristmill.macroxue.format.metadata_db import signed64
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.laws.report import Finder, fresh, playable, run_facts
from gristmill.macroxue.read.step_stream import StepStream, Stretch
from gristmill.macroxue.rules.moves import legal_moves, move
from gristmill.macroxue.rules.true_ranks import true_ranks


def game_notes(path: Path) -> Iterator[Violation]:
    """What is worth knowing of a pack, but no fault of it: for warnings, not for refusal.

    ranks_unknown: rows whose ranks above 65536 cannot be told.
    gaps: runs whose step_index does not count 0, 1, 2, ...
    started_late: runs that start with more than the two tiles of a fresh board.
    score_differs: runs whose rewards do not sum to `max_score`.
    search_legality: search rows with an EV for a move that the board does not allow
        (tuple rows have one for every move; a search may leave a legal one out).
    chosen_ev: rows whose chosen move has no legal bit; a tokenizer stops at them.
    """
    try:
        stream = StepStream(path)
        names = read_valuation_types(path / "valuation_types.json")
        search = names.index("search") if "search" in names else len(names)
        finder = Finder()
        for stretch in stream.stretches(whole_runs=True):
            yield from _stretch_notes(stream, stretch, search, finder)
        yield from finder.rest()
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


def _stretch_notes(
    stream: StepStream, stretch: Stretch, search: int, finder: Finder
) -> Iterator[Violation]:
    rows = stretch.rows
    known = true_ranks(rows, stretch.run_starts())
    moves = playable(rows)
    _, reward, _ = move(known.ranks, moves)
    yield from finder.rows(
        "ranks_unknown", stretch, known.unknown, "ranks above 65536 cannot be told (max {max_rank})"
    )
    legal = legal_moves(known.ranks)
    stated = rows["ev_legal"]
    yield from finder.rows(
        "search_legality",
        stretch,
        (rows["valuation_type"] == search) & (stated & ~legal != 0) & ~known.unknown,
        "ev_legal {ev_legal} has a move that the board does not allow",
    )
    chosen = (stated >> moves) & 1
    yield from finder.rows("chosen_ev", stretch, chosen == 0, "{move} is chosen without an EV")
    for place, own, points, gapless in run_facts(stream, stretch, reward):
        run = stream.runs[place]
        if not gapless:
            yield from finder.run("gaps", run.id, "step_index does not count 0, 1, 2, ...")
        if not fresh(known.ranks[own.start]):
            tiles = int(np.count_nonzero(known.ranks[own.start]))
            yield from finder.run("started_late", run.id, f"starts with {tiles} tiles")
        if signed64(points) != run.max_score:
            yield from finder.run(
                "score_differs", run.id, f"rewards sum to {points}, max_score is {run.max_score}"
            )

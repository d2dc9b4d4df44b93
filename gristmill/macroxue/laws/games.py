"""Whether the games of a pack or pool were played by the rules of 2048, run by run.

Laws of single rows, files and tables stand in `laws.py`. Every violation names
run, step and row. Rows above 65536 are judged by their true ranks
(`true_ranks.py`); where these are unknown, only what the mask tells is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.macroxue.format.jsonl import read_lines, run_of
from gristmill.macroxue.format.metadata_db import signed64
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.laws.report import Finder, fresh, playable, run_facts
from gristmill.macroxue.read.step_stream import StepStream, Stretch
from gristmill.macroxue.rules.board_eval import board_scores, line_table, packed_scores
from gristmill.macroxue.rules.moves import move
from gristmill.macroxue.rules.true_ranks import TrueRanks, true_ranks

_PIECE = 1 << 13


def game_laws(path: Path) -> Iterator[Violation]:
    """What must hold of the games of any pack of real play.

    move_legal: the chosen move changes the board.
    follows: where step_index counts on by one, the next board is the slid board
        with one new tile of rank 1 or 2 in an empty cell.
    board_eval: it is what the formula gives, on every row.
    max_rank: no board has a rank above its `max_rank`, unless that is 0 (unset).
    highest_tile: no board of a run, moved or not, has a tile above `highest_tile`.
    score: rewards of a run never exceed `max_score`, and sum to it where the run
        starts with a fresh board, has steps 0, 1, 2, ... and is not named in
        warnings.jsonl as cut or mixed (its rows differ from num_moves); those
        named there are not judged by their score.
    """
    try:
        stream = StepStream(path)
        excused = _miscounted(path)
        finder, table = Finder(), line_table()
        for stretch in stream.stretches(whole_runs=True):
            yield from _stretch_laws(stream, stretch, excused, finder, table)
        yield from finder.rest()
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


def _miscounted(path: Path) -> set[int]:
    """Runs whose rows differ from their num_moves, by the pack's own warnings."""
    warnings = path / "warnings.jsonl"
    if not warnings.exists():
        return set()
    lines = read_lines(warnings)
    named = {run_of(line) for line in lines if line.get("kind") == "count_mismatch"}
    return {run_id for run_id in named if run_id is not None}


def _broken_steps(
    stretch: Stretch, known: TrueRanks, after: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """Rows that count on from the row before without following from it."""
    rows = stretch.rows
    wrong = np.zeros(len(rows), np.bool_)
    judged = rows["run_id"][1:] == rows["run_id"][:-1]
    judged &= rows["step_index"][1:] == rows["step_index"][:-1] + np.uint32(1)
    judged &= ~known.unknown[:-1]
    # Capped where the truth of the later row is unknown; equal tiles are equal capped.
    cap = np.where(known.unknown[1:], 16, 32).astype(np.uint8)[:, None]
    now, then = np.minimum(known.ranks[1:], cap), np.minimum(after[:-1], cap)
    differs = now != then
    spawned = differs & (then == 0) & (now <= 2)
    one = differs.sum(axis=1) == 1
    wrong[1:] = judged & ~(one & spawned.any(axis=1))
    return wrong


def _wrong_evals(
    rows: Rows, known: TrueRanks, table: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    wrong: npt.NDArray[np.bool_] = packed_scores(rows["board"], table) != rows["board_eval"]
    masked = np.flatnonzero(rows["tile_65536_mask"])
    for at in range(0, len(masked), _PIECE):
        piece = masked[at : at + _PIECE]
        exact = board_scores(known.ranks[piece]) != rows["board_eval"][piece]
        wrong[piece] = np.where(known.unknown[piece], known.unfit[piece], exact)
    return wrong


def _stretch_laws(
    stream: StepStream,
    stretch: Stretch,
    excused: set[int],
    finder: Finder,
    table: npt.NDArray[np.int32],
) -> Iterator[Violation]:
    rows = stretch.rows
    known = true_ranks(rows, stretch.run_starts())
    moves = playable(rows)
    after, reward, changed = move(known.ranks, moves)
    still = ~changed | (rows["move_dir"] > 3)
    yield from finder.rows("move_legal", stretch, still, "{move} changes nothing on this board")
    yield from finder.rows(
        "follows",
        stretch,
        _broken_steps(stretch, known, after),
        "the board is not the one before, moved, with one new tile of rank 1 or 2",
    )
    yield from finder.rows(
        "board_eval",
        stretch,
        _wrong_evals(rows, known, table),
        "{board_eval} is not what the formula gives for the board",
    )
    # Ranks of unknown rows are placeholders: of these only 16 or more is sure.
    highest = np.where(known.unknown, 16, known.ranks.max(axis=1))
    stated = rows["max_rank"]
    yield from finder.rows(
        "max_rank",
        stretch,
        (stated != 0) & (highest > stated),
        "the board has a higher rank than max_rank {max_rank}",
    )
    reached = np.maximum(highest, np.where(known.unknown, 16, after.max(axis=1)))
    for place, own, points, gapless in run_facts(stream, stretch, reward):
        run = stream.runs[place]
        top = int(reached[own].max())
        if run.highest_tile < 1 << top:
            yield from finder.run(
                "highest_tile",
                run.id,
                f"reaches {1 << top}, but highest_tile is {run.highest_tile}",
            )
        if run.id in excused or known.unknown[own].any():
            continue
        whole = gapless and fresh(known.ranks[own.start])
        score = run.max_score if run.max_score >= 0 else run.max_score + (1 << 64)
        if points > score or (whole and signed64(points) != run.max_score):
            yield from finder.run(
                "score",
                run.id,
                f"rewards of steps {int(rows['step_index'][own.start])} to"
                f" {int(rows['step_index'][own.stop - 1])} sum to {points}, max_score is {score}",
            )

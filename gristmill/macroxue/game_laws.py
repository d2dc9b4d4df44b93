"""Whether the games of a pack or pool were played by the rules of 2048, run by run.

Laws of single rows, files and tables stand in `laws.py`. Every violation names
run, step and row. Rows above 65536 are judged by their true ranks
(`true_ranks.py`); where these are unknown, only what the mask tells is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput, Violation
from gristmill.macroxue.board_eval import board_scores, line_table, packed_scores
from gristmill.macroxue.game import DIRECTIONS, legal_moves, move
from gristmill.macroxue.metadata import signed64
from gristmill.macroxue.pool_tables import read_lines
from gristmill.macroxue.rows import Rows
from gristmill.macroxue.stream import StepStream, Stretch
from gristmill.macroxue.true_ranks import TrueRanks, true_ranks
from gristmill.macroxue.valuation_types import read_valuation_types

_SHOWN = 5
"""Places named for each law; the rest is counted."""

_PIECE = 1 << 13


class _Finder:
    """Names the first rows that break a law and counts the others."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.table = line_table()

    def rows(
        self, law: str, stretch: Stretch, wrong: npt.NDArray[np.bool_], found: str
    ) -> Iterator[Violation]:
        """A violation for each row that is wrong; `found` may use {move} and columns of rows."""
        for at in np.flatnonzero(wrong).tolist():
            self.counts[law] += 1
            if self.counts[law] > _SHOWN:
                self.counts[law] += int(np.count_nonzero(wrong[at + 1 :]))
                return
            row = stretch.rows[at]
            columns = {name: row[name] for name in row.dtype.names}
            place = f"run {row['run_id']} step {row['step_index']} (row {stretch.start + at})"
            direction = int(row["move_dir"])
            move_name = DIRECTIONS[direction] if direction < 4 else f"move {direction}"
            yield Violation(law, place, found.format(move=move_name, **columns))

    def run(self, law: str, run_id: int, found: str) -> Iterator[Violation]:
        self.counts[law] += 1
        if self.counts[law] <= _SHOWN:
            yield Violation(law, f"run {run_id}", found)

    def rest(self) -> Iterator[Violation]:
        for law, count in self.counts.items():
            if count > _SHOWN:
                yield Violation(law, "further places", f"{count - _SHOWN} more")


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
        finder = _Finder()
        for stretch in stream.stretches(whole_runs=True):
            yield from _stretch_laws(stream, stretch, excused, finder)
        yield from finder.rest()
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


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
        search = read_valuation_types(path / "valuation_types.json").index("search")
        finder = _Finder()
        for stretch in stream.stretches(whole_runs=True):
            yield from _stretch_notes(stream, stretch, search, finder)
        yield from finder.rest()
    except BadInput as error:
        yield Violation("files_open", error.file, error.rule)


def _miscounted(path: Path) -> set[int]:
    """Runs whose rows differ from their num_moves, by the pack's own warnings."""
    warnings = path / "warnings.jsonl"
    if not warnings.exists():
        return set()
    return {line["run_id"] for line in read_lines(warnings) if line.get("kind") == "count_mismatch"}


def _playable(rows: Rows) -> npt.NDArray[np.uint8]:
    """Moves with those above 3 made 0: they are reported, and must not stop the rest."""
    moves: npt.NDArray[np.uint8] = np.where(rows["move_dir"] < 4, rows["move_dir"], 0)
    return moves.astype(np.uint8)


def _fresh(board: npt.NDArray[np.uint8]) -> bool:
    return np.count_nonzero(board) == 2 and int(board.max()) <= 2


def _run_facts(
    stream: StepStream, stretch: Stretch, reward: npt.NDArray[np.int64]
) -> Iterator[tuple[int, slice, int, bool]]:
    """(place of the run, its rows in the stretch, its points, steps count 0, 1, 2, ...)."""
    steps = stretch.rows["step_index"]
    for at, (start, count) in enumerate(
        zip(stretch.run_starts().tolist(), stretch.counts.tolist(), strict=True)
    ):
        if count:
            own = slice(start, start + count)
            gapless = bool(np.array_equal(steps[own], np.arange(count, dtype=np.uint32)))
            yield stretch.first_run + at, own, int(reward[own].sum()), gapless


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
    now = np.minimum(known.ranks[1:], np.where(known.unknown[1:], 16, 31)[:, None].astype(np.uint8))
    then = np.minimum(after[:-1], np.where(known.unknown[1:], 16, 31)[:, None].astype(np.uint8))
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
    stream: StepStream, stretch: Stretch, excused: set[int], finder: _Finder
) -> Iterator[Violation]:
    rows = stretch.rows
    known = true_ranks(rows, stretch.run_starts())
    moves = _playable(rows)
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
        _wrong_evals(rows, known, finder.table),
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
    for place, own, points, gapless in _run_facts(stream, stretch, reward):
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
        whole = gapless and _fresh(known.ranks[own.start])
        score = run.max_score if run.max_score >= 0 else run.max_score + (1 << 64)
        if points > score or (whole and signed64(points) != run.max_score):
            yield from finder.run(
                "score",
                run.id,
                f"rewards of steps {int(rows['step_index'][own.start])} to"
                f" {int(rows['step_index'][own.stop - 1])} sum to {points}, max_score is {score}",
            )


def _stretch_notes(
    stream: StepStream, stretch: Stretch, search: int, finder: _Finder
) -> Iterator[Violation]:
    rows = stretch.rows
    known = true_ranks(rows, stretch.run_starts())
    moves = _playable(rows)
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
    for place, own, points, gapless in _run_facts(stream, stretch, reward):
        run = stream.runs[place]
        if not gapless:
            yield from finder.run("gaps", run.id, "step_index does not count 0, 1, 2, ...")
        if not _fresh(known.ranks[own.start]):
            tiles = int(np.count_nonzero(known.ranks[own.start]))
            yield from finder.run("started_late", run.id, f"starts with {tiles} tiles")
        if signed64(points) != run.max_score:
            yield from finder.run(
                "score_differs", run.id, f"rewards sum to {points}, max_score is {run.max_score}"
            )

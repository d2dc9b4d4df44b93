"""Laws of the games in `macroxue/pack` and `macroxue/pool`: were they played by 2048's rules?

Tiles above 65536 are judged by their true ranks, rows of unknown ranks as far as their mask allows.
In the same pass notes say what is unusual and breaks no law.

Source: docs/formats/macroxue.md#game-laws, docs/formats/macroxue.md#game-notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.laws import or_unreadable
from gristmill.macroxue.format.files import (
    read_lines,
    read_session,
    read_valuation_types,
    run_of,
    signed64,
)
from gristmill.macroxue.format.rows import Rows
from gristmill.macroxue.laws.files import DATABASE, Finder
from gristmill.macroxue.raw.drops import UNPAIRED
from gristmill.macroxue.raw.step_files import StepRun
from gristmill.macroxue.read.stream import (
    Batch,
    Played,
    StepStream,
    counts_on,
    identity,
    played,
    run_facts,
)
from gristmill.macroxue.rules.game import TrueRanks, broken, fresh, move
from gristmill.macroxue.rules.scores import board_scores, line_table, packed_scores
from gristmill.printable import printable
from gristmill.run.progress import current_progress


def game_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in the games of a pack or pool; the check `noteworthy` warns of it."""
    return or_unreadable(_game_notes(path), law="files_open")


def _game_notes(path: Path) -> Iterator[Violation]:
    stream = StepStream(path)
    notes = Notes(stream, path)
    with current_progress().stage("game notes", "rows", stream.rows) as stage:
        for batch in stream.batches(whole_runs=True):
            yield from notes.of(batch, played(batch))
            stage.advance(len(batch.rows))
    yield from notes.rest()


class Notes:
    """The notes on the batches of one pack, for a caller that reads them."""

    def __init__(self, stream: StepStream, path: Path) -> None:
        names = read_valuation_types(path / "valuation_types.json")
        self._search = names.index("search") if "search" in names else len(names)
        self._stream, self._finder, self._path = stream, Finder(path), path

    def of(self, batch: Batch, facts: Played) -> Iterator[Violation]:
        """Yields the notes on some rows; arguments as `played` takes and returns them."""
        yield from _row_notes(batch, facts, self._search, self._finder)
        yield from _run_notes(self._stream, batch, facts, self._finder)

    def rest(self) -> Iterator[Violation]:
        """Yields the notes on whole games and on the drop, and the number of further notes."""
        yield from _repeated(self._stream, self._finder)
        yield from _unpaired(self._path, self._finder)
        yield from self._finder.rest()


def _repeated(stream: StepStream, finder: Finder) -> Iterator[Violation]:
    first_of: dict[tuple[int, ...], int] = {}
    for run in stream.runs:
        first = first_of.setdefault(identity(run), run.id)
        if first != run.id:
            found = f"the same seed, steps, score and highest tile as run {first}"
            yield from finder.run("repeated_game", run.id, found)


def _unpaired(path: Path, finder: Finder) -> Iterator[Violation]:
    warnings = path / "warnings.jsonl"
    for line in read_lines(warnings) if warnings.exists() else ():
        kind = str(line.get("kind"))
        if kind in UNPAIRED:
            yield from finder.at(kind, printable(str(line.get("path"))), UNPAIRED[kind])


def _row_notes(batch: Batch, facts: Played, search: int, finder: Finder) -> Iterator[Violation]:
    rows, known = batch.rows, facts.known
    yield from finder.rows(
        "ranks_unknown",
        batch,
        known.unknown,
        "ranks above 65536 cannot be found (max_rank {max_rank})",
    )
    # Tuple rows have a value for each move, and a search may leave a legal move out.
    stated = rows["ev_legal"]
    yield from finder.rows(
        "search_legality",
        batch,
        (rows["valuation_type"] == search) & (stated & ~facts.legal != 0) & ~known.unknown,
        "ev_legal {ev_legal} has a move that the board does not allow",
    )
    chosen = (stated >> facts.moves) & 1
    yield from finder.rows(
        "chosen_ev", batch, chosen == 0, "the chosen move {move} has no expected value"
    )


def _run_notes(
    stream: StepStream, batch: Batch, facts: Played, finder: Finder
) -> Iterator[Violation]:
    for index, own, points, gapless in run_facts(batch, facts.reward):
        run, first = stream.runs[index], facts.known.ranks[own.start]
        if not gapless:
            yield from finder.run("gaps", run.id, "step_index does not count 0, 1, 2, ...")
        if not fresh(first):
            tiles = int(np.count_nonzero(first))
            yield from finder.run("started_late", run.id, f"starts with {tiles} tiles")
        if signed64(points) != run.max_score:
            yield from finder.run(
                "score_differs", run.id, f"rewards sum to {points}, max_score is {run.max_score}"
            )


# Rows of large tiles whose board_eval is computed together.
_BATCH_ROWS = 1 << 13
_MOST_VALUED = 3
"""Rows of a law of values that are named: where one is wrong, mostly all of them are."""


def game_laws(
    path: Path, noted: list[Violation] | None = None, *, has_record: bool = True
) -> Iterator[Violation]:
    """Find games of a pack or pool that break the rules of 2048.

    noted: gets what `game_notes` yields, found in the same pass; default: nobody asks.
    has_record: False for a folder that another program may have made; default True.
    """
    return or_unreadable(_game_laws(path, noted, has_record), law="files_open")


def _game_laws(path: Path, noted: list[Violation] | None, has_record: bool) -> Iterator[Violation]:
    stream = StepStream(path)
    session = read_session(path / DATABASE)
    sources = {text for key, text in session.items() if key.rpartition("/")[2] == "source"}
    is_of_others = sources == {StepRun.source} or not (sources or has_record)
    excused = _runs_with_count_mismatch(path)
    finder, few, table = Finder(path), Finder(path, most=_MOST_VALUED), line_table()
    notes = None if noted is None else Notes(stream, path)
    with current_progress().stage("game laws", "rows", stream.rows) as stage:
        for batch in stream.batches(whole_runs=True):
            facts = played(batch)
            yield from _batch_laws(stream, batch, facts, excused, finder, table)
            if is_of_others:
                yield from _value_laws(batch, facts, few)
            if notes is not None and noted is not None:
                noted += notes.of(batch, facts)
            stage.advance(len(batch.rows))
    yield from finder.rest()
    yield from few.rest()
    if notes is not None and noted is not None:
        noted += notes.rest()


def _runs_with_count_mismatch(path: Path) -> set[int]:
    """Ids of the runs whose rows differ from their num_moves, from the warnings of the pack."""
    warnings = path / "warnings.jsonl"
    if not warnings.exists():
        return set()
    lines = read_lines(warnings)
    runs = {run_of(line) for line in lines if line.get("kind") == "count_mismatch"}
    return {run_id for run_id in runs if run_id is not None}


def _wrong_evals(
    rows: Rows, known: TrueRanks, table: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Rows whose board_eval is not that of their board, as bool [N]."""
    wrong: npt.NDArray[np.bool_] = packed_scores(rows["board"], table) != rows["board_eval"]
    masked = np.flatnonzero(rows["tile_65536_mask"])
    for at in range(0, len(masked), _BATCH_ROWS):
        batch = masked[at : at + _BATCH_ROWS]
        differs = board_scores(known.ranks[batch]) != rows["board_eval"][batch]
        wrong[batch] = np.where(known.unknown[batch], known.unfit[batch], differs)
    return wrong


def _unmoved(rows: Rows, facts: Played) -> npt.NDArray[np.bool_]:
    """Rows whose move changes nothing, whatever their unknown ranks are, as bool [N]."""
    unmoved: npt.NDArray[np.bool_] = ~facts.changed
    if len(unknown := np.flatnonzero(unmoved & facts.known.unknown)):
        # Two of the tiles may be equal, and merge.
        equal = np.minimum(facts.known.ranks[unknown], 16)
        unmoved[unknown] = ~move(equal, facts.moves[unknown])[2]
    return unmoved | (rows["move_dir"] > 3)


def _value_laws(batch: Batch, facts: Played, finder: Finder) -> Iterator[Violation]:
    """Check value_legal and value_of_move, which the logs of the player itself need not keep."""
    rows, stated = batch.rows, batch.rows["ev_legal"]
    # A program may write 0 where there is no value, as the player does.
    valued = stated & np.packbits(rows["branch_evs"] != 0, axis=1, bitorder="little")[:, 0]
    yield from finder.rows(
        "value_legal",
        batch,
        (valued & ~facts.legal != 0) & ~facts.known.unknown,
        "{branch_evs}: a move that the board does not allow has a value (ev_legal {ev_legal})",
    )
    yield from finder.rows(
        "value_of_move",
        batch,
        (stated != 0) & ((stated >> facts.moves) & 1 == 0),
        "{branch_evs}: the chosen move {move} has no value (ev_legal {ev_legal})",
    )


def _batch_laws(
    stream: StepStream,
    batch: Batch,
    facts: Played,
    excused: set[int],
    finder: Finder,
    table: npt.NDArray[np.int32],
) -> Iterator[Violation]:
    rows, known, after = batch.rows, facts.known, facts.after
    yield from finder.rows(
        "move_legal", batch, _unmoved(rows, facts), "{move} changes nothing on this board"
    )
    yield from finder.rows(
        "follows",
        batch,
        broken(known, after, counts_on(rows)),
        "the board is not the one before, moved, with one new tile of rank 1 or 2",
    )
    yield from finder.rows(
        "board_eval",
        batch,
        _wrong_evals(rows, known, table),
        "{board_eval} is not what the formula gives for the board",
    )
    # The ranks of unknown rows are placeholders; it is only known that they reach 16.
    highest = np.where(known.unknown, 16, known.ranks.max(axis=1))
    stated = rows["max_rank"]
    yield from finder.rows(
        "max_rank",
        batch,
        (stated != 0) & (highest > stated),
        "the board has a higher rank than max_rank {max_rank}",
    )
    reached = np.maximum(highest, np.where(known.unknown, 16, after.max(axis=1)))
    for index, own, points, gapless in run_facts(batch, facts.reward):
        run = stream.runs[index]
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


def law(subject: Subject) -> Iterator[Violation]:
    """Find what breaks the rules of 2048; a folder without the table of runs has no games."""
    if subject.missing({DATABASE: "games"}):
        return iter(())
    return game_laws(subject.folder, subject.noted, has_record=subject.has_record)

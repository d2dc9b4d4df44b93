"""Notes on `macroxue/pack`: what is unusual in its games and its drop, but breaks no law.

See also `games.py`: the laws of games, for which a pack is refused; they look for these notes in
the same pass.

Source: `docs/formats/macroxue.md#game-notes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gristmill.contract import Violation
from gristmill.laws import or_unreadable
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.format.metadata_db import signed64
from gristmill.macroxue.format.valuation_types import read_valuation_types
from gristmill.macroxue.laws.report import Finder
from gristmill.macroxue.raw.drops import UNPAIRED
from gristmill.macroxue.read.played import Played, played, run_facts
from gristmill.macroxue.read.splits import identity
from gristmill.macroxue.read.step_stream import Batch, StepStream
from gristmill.macroxue.rules.continuity import fresh
from gristmill.macroxue.rules.moves import legal_moves
from gristmill.printable import printable
from gristmill.run.progress import current_progress


def game_notes(path: Path) -> Iterator[Violation]:
    """Find what is unusual in the games of a pack or pool; the check `noteworthy` warns of it.

    Yields a violation for each note:
    ranks_unknown: rows whose ranks above 65536 cannot be found.
    gaps: runs whose step_index does not count 0, 1, 2, ...
    started_late: runs that do not start with the two tiles of a new game.
    score_differs: runs whose rewards do not sum to `max_score`.
    search_legality: search rows with an expected value for a move that the board does not allow.
        Tuple rows have a value for each move, and a search may leave a legal move out.
    chosen_ev: rows whose chosen move has no legal bit; the tokenizer of the original stops there.
    repeated_game: runs that equal an earlier run in seed, steps, score and highest tile.
    unpaired_meta, unpaired_log: files of the drop that were left out, since the other file of
        their game is missing.
    files_open: the files can be read, and agree with metadata.db.
    The current progress gets the stage "game notes" in rows.
    """
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
    """The notes on the batches of one pack, for a caller that reads them.

    stream: the rows of the pack.
    path: its folder.

    Raises BadInput if valuation_types.json cannot be read.
    """

    def __init__(self, stream: StepStream, path: Path) -> None:
        names = read_valuation_types(path / "valuation_types.json")
        self._search = names.index("search") if "search" in names else len(names)
        self._stream, self._finder, self._path = stream, Finder(), path

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
    rows, known, moves = batch.rows, facts.known, facts.moves
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

"""Laws of `macroxue/training_view` and its source: each row is one of it, or an image of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.laws import Few, or_unreadable
from gristmill.macroxue.format.metadata_db import read_gaps
from gristmill.macroxue.format.rows import Rows, decode_boards, to_aligned
from gristmill.macroxue.format.view_files import TRAIN, VALIDATION, Description, read_description
from gristmill.macroxue.read.played import gaps_of, played
from gristmill.macroxue.read.splits import held_by_hash
from gristmill.macroxue.read.step_stream import StepStream
from gristmill.macroxue.rules.board_eval import board_scores
from gristmill.macroxue.rules.true_ranks import TrueRanks

_KEPT = ("step_index", "valuation_type", "max_rank", "seed")
"""The columns that no symmetry changes."""
_VALUE_OF = {"up": (0, 1), "down": (2, 1), "left": (1, 0), "right": (1, 2)}
# The moves as a cross in a square of 3 by 3, which turns as the board does.
_CROSS = np.full((3, 3), -1)
for _number, _place in enumerate(_VALUE_OF.values()):
    _CROSS[_place] = _number


def law(subject: Subject) -> Iterator[Violation]:
    """Find what a view has otherwise than its source.

    read_only: a file that is a link to one of the source can be written to by nobody.
    side: a run is in the folder that hash and seed of the settings give it.
    gaps: the table names the runs whose boards or score show that steps are missing.
    """
    return or_unreadable(_laws(subject), law="files_open")


def _laws(subject: Subject) -> Iterator[Violation]:
    folder, (source, *sidecars) = subject.folder, subject.inputs
    view, few = read_description(folder), Few("further runs", "{more} more")
    yield from _read_only(folder, [source, *sidecars], view)
    stream = StepStream(source)
    runs = {run.id: at for at, run in enumerate(stream.runs)}
    held = held_by_hash(
        stream.runs, subject.config["validation_share"], subject.config["split_seed"]
    )
    for side in view.sides:
        own = StepStream(folder / side)
        marked = {gap.run_id for gap in read_gaps(folder / side / "metadata.db")}
        for at, run in enumerate(own.runs):
            source_id, symmetry = view.source_run(run.id)
            if source_id not in runs:
                yield from few.at("rows", f"{side} run {run.id}", "is no run of the source")
                continue
            if side and not subject.config["train_query"]:
                expected = VALIDATION if source_id in held else TRAIN
                if side != expected:
                    yield from few.at("side", f"{side} run {run.id}", f"belongs into {expected}")
            bounds = stream.run_bounds(runs[source_id])
            batch = stream.batch(*bounds)
            games = played(batch)
            rows = own.read(*own.run_bounds(at))
            if wrong := _difference(batch.rows, rows, symmetry, games.known):
                yield from few.at(wrong, f"{side} run {run.id}", "is not the run of the source")
            if any(gaps_of(batch, stream.runs, games)) != (run.id in marked):
                yield from few.at("gaps", f"{side} run {run.id}", "its mark is not what it shows")
    yield from few.rest()


def _read_only(folder: Path, sources: list[Path], view: Description) -> Iterator[Violation]:
    for name in view.linked:
        file = folder / name
        is_link = any(
            (source / name).exists() and (source / name).samefile(file) for source in sources
        )
        if is_link and file.stat().st_mode & 0o222:
            found = "is a link to a file of the source, and can be written to: chmod a-w"
            yield Violation("read_only", name, found)


def _difference(source: Rows, rows: Rows, symmetry: int, known: TrueRanks) -> str | None:
    """The law that a run breaks, None where it has the rows of its source."""
    if len(source) != len(rows):
        return "rows"
    wanted, found = to_aligned(source), to_aligned(rows)
    if symmetry == 0:
        names = [name for name in wanted.dtype.names or () if name != "run_id"]
        return None if _equal(wanted, found, names) else "rows"
    boards = decode_boards(wanted["board"], wanted["tile_65536_mask"])
    turned = decode_boards(found["board"], found["tile_65536_mask"])
    if not np.array_equal(_square(boards, 4, symmetry), turned):
        return "rows"
    cross = _square(_CROSS.reshape(1, 9), 3, symmetry)[0]
    order = [int(cross[3 * row + column]) for row, column in _VALUE_OF.values()]
    moves = found["move_dir"]
    bits = (wanted["ev_legal"][:, None] >> np.arange(4)) & 1
    same = (
        np.array_equal(found["branch_evs"], wanted["branch_evs"][:, order])
        and np.array_equal((found["ev_legal"][:, None] >> np.arange(4)) & 1, bits[:, order])
        and np.array_equal(
            np.where(moves < 4, np.array(order)[moves & 3], moves), wanted["move_dir"]
        )
        and _equal(wanted, found, _KEPT)
    )
    if not same:
        return "rows"
    scores = board_scores(_square(known.ranks, 4, symmetry))
    return None if np.array_equal(scores, found["board_eval"]) else "board_eval"


def _equal(wanted: Rows, found: Rows, columns: Iterable[str]) -> bool:
    return all(np.array_equal(wanted[name], found[name]) for name in columns)


def _square(cells: npt.NDArray[Any], side: int, symmetry: int) -> npt.NDArray[Any]:
    """Squares [N, side * side] under a symmetry."""
    square = cells.reshape(-1, side, side)
    square = square[:, :, ::-1] if symmetry >= 4 else square
    turned = np.rot90(square, -(symmetry % 4), axes=(1, 2))
    return np.ascontiguousarray(turned).reshape(cells.shape)

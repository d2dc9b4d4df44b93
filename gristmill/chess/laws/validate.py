"""Laws of validated games."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.format import rows
from gristmill.chess.format.folders import FOLDER as SIDECAR
from gristmill.chess.format.folders import INVALID, PROFILE, SUMMARY, VALID
from gristmill.chess.laws.files import (
    SIDECAR_LAWS,
    check_rows,
    count_csv_rows,
    difference,
    law,
    missing_keys,
    read_json,
)
from gristmill.chess.read.row_batches import RowBatch
from gristmill.contract import Violation
from gristmill.families import Subject

_COUNTS = ("total_games", "valid_games", "invalid_games", "invalid_reason_counts")


@law
def validated_laws(subject: Subject) -> Iterator[Violation]:
    """Find where rows, sidecar, phases, winners and counts of validated games do not agree."""
    from gristmill.chess.kernels import rowshape

    path = subject.folder
    without = subject.missing({PROFILE: "plies_profiled", SIDECAR: SIDECAR_LAWS})
    summary, summary_faults = read_json(path / SUMMARY)
    profile, profile_faults = ({}, []) if PROFILE in without else read_json(path / PROFILE)
    yield from summary_faults + profile_faults
    games = plies = 0
    for item in check_rows(
        path / VALID,
        path,
        "games",
        is_ours=subject.has_record,
        has_sidecar=SIDECAR not in without,
    ):
        if isinstance(item, Violation):
            yield item
            continue
        games += len(item.columns)
        plies += int(item.columns[:, rowshape.N].sum())
        yield from _check_fields(item, path / VALID)
        if summary.get("compat") == "current" and (item.codes == 0).any():
            yield Violation("moves_legal", str(path / VALID), "a move is not legal from the start")
    if summary:
        yield from _check_summary(path, summary, games)
    if profile:
        yield from difference("plies_profiled", path / PROFILE, plies, profile.get("plies"))


def _check_fields(batch: RowBatch, where: Path) -> Iterator[Violation]:
    """The fields of a row agree with each other."""
    from gristmill.chess.kernels import rowshape

    columns, start = batch.columns, batch.byte_range.start
    wrong = np.flatnonzero(columns[:, rowshape.N] != columns[:, rowshape.PLIES])
    if len(wrong):
        place = f"{where}: row {int(wrong[0])} from byte {start} on"
        yield Violation("plies_counted", place, "plies is not the number of moves")
    starts = columns[:, rowshape.RES0]
    lengths = columns[:, rowshape.RES1] - starts
    sides = np.full(len(columns), ord(rows.winner_side("")))
    for result, side in rows.WINNERS.items():
        is_result = lengths == len(result)
        for offset, byte in enumerate(result.encode()):
            is_result &= batch.buf[starts + offset] == byte
        sides[is_result] = ord(side)
    for number in np.flatnonzero(sides != columns[:, rowshape.WINNER]).tolist():
        text = batch.buf[starts[number] : starts[number] + lengths[number]].tobytes()
        place = f"{where}: row {number} from byte {start} on"
        found = f"result {text!r}, winner_side {chr(columns[number, rowshape.WINNER])}"
        yield Violation("winner_of_result", place, found)


def _check_summary(path: Path, summary: dict[str, Any], games: int) -> Iterator[Violation]:
    """The counts of summary.json add up, and are those of the rows and of the rejected games."""
    missing = missing_keys(summary, path / SUMMARY, *_COUNTS)
    yield from missing
    if missing:
        return
    yield from difference("valid_counted", path / SUMMARY, games, summary["valid_games"])
    try:
        rejected = count_csv_rows(path / INVALID) - 1
    except (OSError, ValueError) as error:
        yield Violation("readable_csv", str(path / INVALID), repr(error))
    else:
        recorded = summary["invalid_games"]
        yield from difference("invalid_counted", path / INVALID, rejected, recorded)
        reasons = sum(summary["invalid_reason_counts"].values())
        yield from difference("reasons_counted", path / SUMMARY, reasons, rejected)
    total = summary["valid_games"] + summary["invalid_games"]
    yield from difference("total_counted", path / SUMMARY, total, summary["total_games"])

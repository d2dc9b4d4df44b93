"""One byte range of a PGN file: rows, rejects, flags and sidecar records.

A worker runs this. The output depends on the bytes of the range and the config alone. See
also `validate.py`: it puts the ranges together.
Source: `docs/formats/chess.md#inputs`, `docs/formats/chess.md#verdict-order`.
"""

from __future__ import annotations

import re

import numpy as np

from gristmill.chess.builders.range_output import RangeOutput, RangeTask
from gristmill.chess.builders.verdict import judge
from gristmill.chess.format import rows
from gristmill.chess.format.sidecar import GAME
from gristmill.chess.raw.batches import Batch
from gristmill.chess.raw.pgn import PlacedGame, read_range
from gristmill.chess.read.phases import phase_codes
from gristmill.run.part_streams import Made

_ECO = re.compile("[A-E][0-9][0-9]")


def validate_range(task: RangeTask) -> Made:
    """Validate the games of one byte range.

    Returns the streams of `RangeOutput.finish`, and a summary whose `end` is the byte after the
    last game. Raises BadInput for a game that cannot be read, and MissingPythonChess where a game
    needs python-chess.
    """
    from gristmill.chess.builders.validate_fast import add_batch

    output, end = RangeOutput(task), task.range.start
    for item in read_range(task.range, current=not output.reference):
        if isinstance(item, Batch):
            add_batch(output, item)
        elif isinstance(item, PlacedGame):
            add_game(output, item)
        else:
            end = item
    return output.finish(end)


def add_game(output: RangeOutput, placed: PlacedGame) -> None:
    """Decide on a game that python-chess read, and add its row, or its reject."""
    game, task = placed.game, output.task
    output.counts["total"] += 1
    output.counts["oracle"] += 1
    headers = rows.ordered_headers(game.headers)
    reason, ply, flags, error = judge(game, task.config)
    if output.reference:
        game_id = rows.reference_id(task.source, headers, game.moves)
    else:
        game_id = rows.content_id(headers, game.moves)
    if not game.moves and not headers.keys() - {"Result"}:
        output.counts["no_game"] += 1
    if reason:
        without_id = (
            "unclosed_comment",
            "pgn_errors",
            "empty_game",
            *("result_mismatch",) * output.reference,
        )
        game_id = "" if reason in without_id else game_id
        output.reject(game_id, reason, ply, game.result, error, placed.offset)
        return
    winner = rows.winner_side(game.result)
    detail = f"movetext {'/'.join(game.terminators)}"
    output.flag(game_id, flags, game.result, detail, placed.offset)
    row = rows.valid_row(game_id, task.source, headers, game.result, game.moves)
    record = (0, placed.offset, placed.size, task.file, len(game.moves), flags)
    records = np.array([(*record, rows.move_key(game.moves))], dtype=GAME)
    output.keep([row], records)
    output.phases.append(phase_codes([game.moves])[0])
    eco = headers.get("ECO", "")
    output.date(headers.get("UTCDate", ""), headers.get("Date", ""), placed.offset)
    known = bool(_ECO.fullmatch(eco))
    name = headers.get("Opening", "") if known else ""
    output.opening(eco if known else "?", name, [int(winner == side) for side in "WDB?"])

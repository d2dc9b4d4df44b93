"""One byte range of a PGN file: rows, rejects, flags and sidecar records.

A worker runs this. The output depends on the bytes of the range and the config alone. See
also `validate.py`: it puts the ranges together.
Source: docs/formats/chess.md#inputs
"""

from __future__ import annotations

from gristmill.chess.builders.range_output import RangeOutput, RangeTask
from gristmill.chess.raw.batches import Batch
from gristmill.chess.raw.pgn import PlacedGame, read_range
from gristmill.run.part_streams import Made


def validate_range(task: RangeTask) -> Made:
    """Validate the games of one byte range.

    Returns the streams of `RangeOutput.finish`, and a summary whose `end` is the byte after the
    last game. Raises BadInput for a game that cannot be read, and MissingPythonChess where a game
    needs python-chess.
    """
    from gristmill.chess.builders.validate_fallback import add_game
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

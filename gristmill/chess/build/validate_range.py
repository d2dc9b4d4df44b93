"""One byte range of a PGN file: validated rows, rejects, flags and sidecar records.

This is what a worker does: the output of a range depends on its bytes and the
config alone. `validate.py` puts the ranges together.
"""

from __future__ import annotations

from gristmill.chess.build.range_output import RangeOutput, RangeTask
from gristmill.chess.raw.pgn import Batch, PlacedGame, read_range
from gristmill.run.part_streams import Made


def validate_range(task: RangeTask) -> Made:
    """Validate one byte range: streams of RangeOutput.made, summary with `end`."""
    from gristmill.chess.build.validate_fallback import take_odd
    from gristmill.chess.build.validate_fast import take_batch

    output, end = RangeOutput(task), task.range.start
    for item in read_range(task.range):
        if isinstance(item, Batch):
            take_batch(output, item)
        elif isinstance(item, PlacedGame):
            take_odd(output, item)
        else:
            end = item
    return output.made(end)

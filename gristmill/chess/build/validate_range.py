"""One share of a PGN file made into validated rows, rejects, flags and sidecar records.

The worker half of validation: what a share yields depends on its bytes and the
config alone. Putting shares together is `validate`'s.
"""

from __future__ import annotations

from gristmill.chess.build.range_output import Harvest, ShareTask
from gristmill.chess.raw.pgn import Batch, PlacedGame, read_range
from gristmill.run.sections import Made


def harvest_share(task: ShareTask) -> Made:
    """Validate one share: sections valid, invalid, flagged, games, phases; summary with `end`."""
    from gristmill.chess.build.validate_fallback import take_odd
    from gristmill.chess.build.validate_fast import take_batch

    harvest, end = Harvest(task), task.share.start
    for item in read_range(task.share):
        if isinstance(item, Batch):
            take_batch(harvest, item)
        elif isinstance(item, PlacedGame):
            take_odd(harvest, item)
        else:
            end = item
    return harvest.made(end)

"""What a run is for that a sensor requests."""

from __future__ import annotations

import dagster as dg

from assets.ranges import RANGE


def partitions_of(request: dg.RunRequest) -> list[str]:
    """The partition of a run; first and last of a run of several."""
    ends = [request.tags[name] for name in RANGE if name in request.tags]
    return ends or [str(request.partition_key)]

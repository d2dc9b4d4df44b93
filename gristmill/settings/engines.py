"""The table `[run]`: which machines make the parts of a build, and how its inputs are proved.

Nothing here is part of a fingerprint: the bytes are the same. Source: docs/clusters.md and
docs/publishing-details.md#proof-of-inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from gristmill.settings.fields import Checked
from gristmill.settings.kinds import Count, Gt, Help, Le, Unit
from gristmill.settings.tables import Table

LOCAL: Final = "local"
RAY: Final = "ray"
STAMPS: Final = "stamps"
HASH: Final = "hash"


@dataclass(frozen=True)
class RunSettings(Checked):
    """What makes the parts of builds that have more than one worker, and how inputs are proved."""

    engine: Annotated[
        Literal["local", "ray"],
        Help(
            "What makes the parts of a build that has more than one worker: processes of "
            "this machine, or tasks of a Ray cluster. Needs the extra `ray`; see clusters.md."
        ),
    ] = LOCAL
    ray_address: Annotated[
        str, Help("Address of the Ray cluster; auto: the one that this machine is in.")
    ] = "auto"
    ray_cpus: Annotated[
        float, Gt(0), Le(4096), Unit("CPUs"), Help("CPUs that Ray sets aside for a part.")
    ] = 1.0
    ray_memory: Annotated[
        Count,
        Unit("bytes"),
        Help("Memory that Ray sets aside for a part; 0: Ray does not look at memory."),
    ] = 0
    ray_retries: Annotated[
        Count,
        Le(1000),
        Unit("attempts"),
        Help("How often a part is made again whose worker or node died."),
    ] = 3
    prove: Annotated[
        Literal["stamps", "hash"],
        Help(
            "How the inputs of a build are proved: by size and times, and by their hash "
            "where these cannot exclude a change; or by the hash of every file, which finds what a "
            "disk changed by itself. See publishing.md."
        ),
    ] = STAMPS


RUN: Final = Table("run", RunSettings)

"""The table `[run]`: which machines make the parts of a build, and how its inputs are proved.

Nothing here is part of a fingerprint: the bytes are the same. Source: docs/clusters.md and
docs/publishing.md#proof-of-inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gristmill.settings.fields import check_fields
from gristmill.settings.tables import Table

LOCAL: Final = "local"
RAY: Final = "ray"
STAMPS: Final = "stamps"
HASH: Final = "hash"


@dataclass(frozen=True)
class RunSettings:
    """What makes the parts of builds that have more than one worker, and how inputs are proved.

    engine: "local" (default), processes of this machine; "ray", tasks of a Ray cluster.
    ray_address: of the cluster; default "auto".
    ray_cpus: CPUs for a part; default 1.
    ray_memory: bytes for a part; default 0: Ray does not look at memory.
    ray_retries: how often a part is made again whose worker or node died; default 3.
    prove: "stamps" (default), a file is hashed where its size and times cannot exclude a change;
        "hash", every file of every input is hashed before a build reads it.
    """

    engine: str = field(
        default=LOCAL,
        metadata={
            "help": "What makes the parts of a build that has more than one worker: processes of "
            "this machine, or tasks of a Ray cluster. Needs the extra `ray`; see clusters.md.",
            "choices": (LOCAL, RAY),
        },
    )
    ray_address: str = field(
        default="auto",
        metadata={"help": "Address of the Ray cluster; auto: the one that this machine is in."},
    )
    ray_cpus: float = field(
        default=1.0,
        metadata={
            "help": "CPUs that Ray sets aside for a part.",
            "above": 0,
            "unit": "CPUs",
            "most": 4096,
        },
    )
    ray_memory: int = field(
        default=0,
        metadata={
            "help": "Memory that Ray sets aside for a part; 0: Ray does not look at memory.",
            "least": 0,
            "unit": "bytes",
        },
    )
    ray_retries: int = field(
        default=3,
        metadata={
            "help": "How often a part is made again whose worker or node died.",
            "least": 0,
            "unit": "attempts",
            "most": 1000,
        },
    )
    prove: str = field(
        default=STAMPS,
        metadata={
            "help": "How the inputs of a build are proved: by size and times, and by their hash "
            "where these cannot exclude a change; or by the hash of every file, which finds what a "
            "disk changed by itself. See publishing.md.",
            "choices": (STAMPS, HASH),
        },
    )

    def __post_init__(self) -> None:
        check_fields(self)


RUN: Final = Table("run", RunSettings)

"""What a family gives to the code location: assets, checks, inboxes and what starts them.

`definitions.py` collects one `Family` from each package `assets/<family>/`. See also
`gristmill/<family>/family.py`: laws, views, traces and sample drops of a family's assets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from assets.inbox import Inbox
from resources import Lake


@dataclass(frozen=True)
class Family:
    """Everything that one family adds to the definitions.

    assets: external and built ones, in the order in which `gristmill materialize` builds them
        where their dependencies leave it open.
    checks: of those assets; the ones with an automation condition are evaluated by the
        sensor `followers`.
    jobs: what `dg.define_asset_job` makes.
    inboxes: the folders below `drops/` that the family watches.
    schedules: off unless they say otherwise.
    resources: by resource key, beside `lake`.
    available: returns the partition keys that `materialize --all` builds; an empty collection
        also leaves out the assets without partitions. None builds every known key.
    """

    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition] = ()
    jobs: Sequence[Any] = ()
    inboxes: Sequence[Inbox] = ()
    schedules: Sequence[dg.ScheduleDefinition] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    available: Callable[[Lake], Collection[str]] | None = None

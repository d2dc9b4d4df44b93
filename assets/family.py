"""The definitions of one family: assets, checks, inboxes, jobs, schedules and resources.

`definitions.py` collects one `Family` from each package `assets/<family>/`. See also
`gristmill/<family>/family.py`: laws, views, traces and sample drops of a family's assets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from assets.inbox import Inbox
from resources import CorporaHub, Lake


@dataclass(frozen=True)
class Family:
    """Everything that one family adds to the definitions.

    assets: external and built assets. `gristmill materialize` builds them in this order where
        their dependencies leave the order open.
    checks: the checks of those assets. The sensor `followers` evaluates the assets and checks
        that have an automation condition.
    jobs: results of `dg.define_asset_job`; default none.
    inboxes: the folders below `drops/` that the family watches; default none.
    schedules: default none.
    resources: resources in addition to `lake`, by resource key; default none.
    hubs: by the name of the inbox, what `gristmill fetch` downloads its raw files from.
    available: returns the partition keys that `materialize --all` builds; an empty collection
        also leaves out the assets without partitions. Default None: every known key.
    """

    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition] = ()
    jobs: Sequence[Any] = ()
    inboxes: Sequence[Inbox] = ()
    schedules: Sequence[dg.ScheduleDefinition] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    hubs: Mapping[str, CorporaHub] = field(default_factory=dict)
    available: Callable[[Lake], Collection[str]] | None = None

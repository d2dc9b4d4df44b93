"""The definitions of one family: assets, checks, inboxes, jobs, schedules and resources.

`definitions.py` collects one `Family` from each package `assets/<family>/`. See also
`gristmill/<family>/family.py`: laws, views, traces and sample drops of a family's assets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import BaseModel

from assets.choices import Choices
from assets.inbox import Inbox
from resources import CorporaHub, Lake, PuzzlesHub, ReasoningHub

if TYPE_CHECKING:
    from gristmill.publish.build import Build
    from gristmill.publish.by_rank import Ranks


class _NoChoices(BaseModel):
    """The config of a run that chooses nothing itself."""


NO_CHOICES = _NoChoices()
"""For the builds of a run without a config."""

BuildOf = Callable[[Lake, "str | None"], "Build"]
"""Returns the build of a partition; the key is None for an asset without partitions."""


@dataclass(frozen=True)
class Local:
    """How `gristmill build` builds a partition of one asset, without a Dagster run.

    build: returns the build of a partition by its key; given values come before those of
        `gristmill.toml`.
    partitions: returns the keys of the partitions whose inputs are there.
    ranks: returns the parts of a partition by rank, with the arguments of `build`; None for an
        asset without ranks.
    """

    build: Callable[[Lake, str, Mapping[str, Any]], Build]
    partitions: Callable[[Lake], Sequence[str]]
    ranks: Callable[[Lake, str, Mapping[str, Any]], Ranks] | None = None


@dataclass(frozen=True)
class Family:
    """Everything that one family adds to the definitions.

    assets: external and built assets. `gristmill materialize` builds them in this order where
        their dependencies leave the order open. The sensor `followers` evaluates those that have
        an automation condition.
    checks: the checks of those assets; default none.
    jobs: results of `dg.define_asset_job`; default none.
    inboxes: the folders below `drops/` that the family watches; default none.
    schedules: default none.
    resources: resources in addition to `lake`, by resource key; default none.
    hubs: by the name of the inbox, what `gristmill fetch` downloads its raw files from.
    available: returns the partition keys that `materialize --all` builds; an empty collection
        also leaves out the assets without partitions. Default None: every known key.
    local: by the key of an asset, how `gristmill build` builds it; default none.
    builds: by the key of an asset, what returns the build of a partition as a run without a
        config makes it: `gristmill materialize` compares it with the record. Default none; an
        asset in `local` needs no entry.
    choices: by the key of an asset, which table and which files its config comes from; default
        none: its builds have nothing to choose.
    """

    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition] = ()
    jobs: Sequence[Any] = ()
    inboxes: Sequence[Inbox] = ()
    schedules: Sequence[dg.ScheduleDefinition] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    hubs: Mapping[str, CorporaHub | PuzzlesHub | ReasoningHub] = field(default_factory=dict)
    available: Callable[[Lake], Collection[str]] | None = None
    local: Mapping[str, Local] = field(default_factory=dict)
    choices: Mapping[str, Choices] = field(default_factory=dict)
    builds: Mapping[str, BuildOf] = field(default_factory=dict)

    def builds_of_assets(self) -> dict[str, BuildOf]:
        """Returns what returns the build of a partition, by the key of the asset."""
        return {
            **{name: _without_values(local) for name, local in self.local.items()},
            **self.builds,
        }


def _without_values(local: Local) -> BuildOf:
    # An asset without partitions takes any key.
    return lambda lake, key: local.build(lake, key or "", {})

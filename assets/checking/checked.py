"""The assets that have checks, with their rules. See also `rules.py`: what a rule is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

import dagster as dg

from assets.checking.rules import Rule, Scope
from assets.checking.verdicts import Verdicts
from resources import Lake


@dataclass
class Checked:
    """An asset with its checks.

    asset: the asset.
    below: folder relative to the data root that holds its artifacts.
    rules: its checks by name.
    """

    asset: dg.AssetsDefinition
    below: str
    rules: dict[str, Rule] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The key of the asset, as records name it."""
        return self.asset.key.to_user_string()

    @property
    def of_bytes(self) -> list[str]:
        """Names of the checks whose verdicts count for the very files."""
        return [rule.name for rule in self.rules.values() if rule.of_bytes]

    def key(self, rule: Rule) -> dg.AssetCheckKey:
        """The key of a check."""
        return dg.AssetCheckKey(self.asset.key, rule.name)

    def partitions(self, instance: dg.DagsterInstance) -> Collection[str] | None:
        """The partitions that the asset has; None if it has none."""
        definition = self.asset.partitions_def
        if definition is None:
            return None
        return set(definition.get_partition_keys(dynamic_partitions_store=instance))

    def scope(
        self,
        lake: Lake,
        keys: Collection[str] | None,
        since: datetime | None,
        verdicts: Verdicts,
    ) -> Scope:
        """What the checks look at; arguments as of `Scope`."""
        return Scope(lake, self.asset.key, self.below, keys, since, verdicts)


CHECKED: dict[dg.AssetKey, Checked] = {}
"""Every asset that has checks."""


def registered(asset: dg.AssetsDefinition, below: str, wanted: Iterable[Rule]) -> Checked:
    """Returns an asset with its checks, after adding some."""
    checked = CHECKED.get(asset.key)
    if checked is None or checked.asset is not asset:
        checked = CHECKED[asset.key] = Checked(asset, below)
    checked.rules.update({rule.name: rule for rule in wanted})
    return checked

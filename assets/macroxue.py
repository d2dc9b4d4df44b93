"""2048 in Dagster: raw self-play drops, packs, values, pools and training views."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

import dagster as dg

from assets.checking.rules import Looked, Rule, Scope, command
from assets.family import Definitions, checks_of, family_of
from assets.inbox import Start
from gristmill.contract import Violation
from gristmill.data_root import DataRoot
from gristmill.macroxue.raw.described import stale_members, views_with


def member_checks(built: Definitions) -> list[dg.AssetChecksDefinition]:
    """Returns the check `pool_members_current`; built: the definitions of 2048, by key."""
    rule = Rule(
        "pool_members_current",
        "The packs that a pool was merged from are the published ones, and are those that its "
        "file names. This check only warns: materialize the pool to merge the current packs.",
        _members_current,
        lambda asset, pool, _: f"merge the current packs: `{command(asset, pool)}`",
        dg.AssetCheckSeverity.WARN,
        follows=(built["macroxue/pack"].key,),
    )
    return [checks_of(built["macroxue/pool"], "macroxue/pools", [rule], rule.name)]


def _members_current(scope: Scope) -> Looked:
    pools = {item.subject: item.data_version for item in scope.standing}
    return Looked(
        pools,
        [
            (name.partition("/")[0], Violation("member", name, why))
            for name, why in stale_members(scope.lake, list(pools)).items()
        ],
    )


def starts_of_annotations(
    built: Definitions, instance: dg.DagsterInstance, path: Path, _settled: Collection[str]
) -> list[Start]:
    """Returns the runs of annotations: one for each view that names them and has arrived."""
    arrived = set(instance.get_dynamic_partitions("macroxue_views"))
    views = views_with(DataRoot(path.parents[2]), path.name)
    return [Start((built["macroxue/training_view"],), view) for view in views if view in arrived]


FAMILY = family_of(
    "macroxue",
    checks=member_checks,
    inboxes=lambda built: {"annotations": {"starts": partial(starts_of_annotations, built)}},
)
"""The check of pools beside those of every asset: whether their member packs are current."""

"""The check of pools beside those of every asset: whether their member packs are current."""

import dagster as dg

from assets.checking.rules import Looked, Rule, Scope, command
from assets.checks import checks_of
from assets.family import Definitions
from gristmill.contract import Violation
from gristmill.macroxue.raw.pool_members import stale_members


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

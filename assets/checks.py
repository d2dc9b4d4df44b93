"""Asset checks: one check for all partitions of an asset, whose state is that of all of them.

A run of some partitions looks at those only, so that its cost depends on the run and not on the
data root; what was found in the others before stays. What the same run built was hashed and checked
before its commit: unless size or time of a file changed, it is not read again. Executed by itself,
a check reads every published artifact of the asset.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import dagster as dg

from assets.checking import evaluations, rules
from assets.checking.rules import Rule, registered
from assets.ranges import PARTITION, RANGE
from gristmill import families
from gristmill.contract import Violation
from gristmill.data_root.states import BUILT
from gristmill.printable import command
from gristmill.provenance import Record
from resources import Lake

ON_DISK = frozenset({"intact", "lawful"})
"""Names of the checks that a rebuild of damaged files mends."""

_DESCRIPTIONS: Final = {
    BUILT: "The last build of every partition succeeded. What was published before a failed build "
    "stays as it was.",
    "intact": "Every published file has the size and sha256 that its record states, the record is "
    "complete, and the inputs of the artifact have not changed. What the same run built was hashed "
    "before its commit: it is not read again if the files kept size and time.",
    "lawful": "The contents obey the laws of the asset, recomputed from the published files. Where "
    "that takes long, the check takes a sample; the full check ran before the commit. Its verdict "
    "counts for what the same run built.",
    "noteworthy": "Unusual contents that come from the drop and break no law, raw files that are "
    "equal, and a config that is not the one that files choose for the next build. This check only "
    "warns.",
}


def disk_checks(
    asset: dg.AssetsDefinition,
    below: str,
    has_laws: bool = True,
    notes: Callable[[Path], Iterable[Violation]] | None = None,
    blocking: bool = False,
    has_config: bool | None = None,
    counted: Callable[[Record, Path], Iterable[Violation]] | None = None,
    across: bool = False,
) -> list[dg.AssetChecksDefinition]:
    """Returns the checks `built`, `intact` (bytes, records, inputs) and `lawful` of one asset.

    All checks share one step, since a step takes longer than most checks.

    notes: takes the folder of an artifact and returns what is unusual in it without being a
        violation; the check `noteworthy` warns about it. Default None: no such check.
    has_config: whether `noteworthy` also warns where files choose another config than the one that
        stands. Default None: if the asset has a table of its own in `gristmill.toml`.
    """
    wanted = [
        Rule(BUILT, _DESCRIPTIONS[BUILT], None, lambda *_: ""),
        Rule("intact", _DESCRIPTIONS["intact"], rules.intact, _mend, of_bytes=True),
    ]
    if has_laws:
        wanted.append(
            Rule("lawful", _DESCRIPTIONS["lawful"], rules.lawful, _mend, blocking=blocking)
        )
    if has_config is None:
        has_config = asset.key.to_user_string() in families.tables()
    if notes is not None or counted is not None or has_config or across:
        look = rules.noteworthy(notes or (lambda _: ()), counted or (lambda *_: ()), across)
        warn = dg.AssetCheckSeverity.WARN
        wanted.append(Rule("noteworthy", _DESCRIPTIONS["noteworthy"], look, _consider, warn))
    return [checks_of(asset, below, wanted, f"{asset.key.to_python_identifier()}_on_disk")]


def checks_of(
    asset: dg.AssetsDefinition,
    below: str,
    wanted: Sequence[Rule],
    name: str,
) -> dg.AssetChecksDefinition:
    """Returns checks that look at the partitions of a run and speak for all.

    below: folder relative to the data root that holds the asset's artifacts.
    """
    checked = registered(asset, below, wanted)
    specs = [
        dg.AssetCheckSpec(
            name=rule.name,
            asset=asset,
            description=rule.description,
            blocking=rule.blocking,
        )
        for rule in wanted
    ]

    @dg.multi_asset_check(name=name, specs=specs, can_subset=True)
    def check(context: dg.AssetCheckExecutionContext, lake: Lake) -> Iterator[dg.AssetCheckResult]:
        selected = {key.name for key in context.selected_asset_check_keys}
        chosen = [rule for rule in wanted if rule.name in selected]
        yield from evaluations.evaluated(
            context, lake, checked, chosen, partitions_of_run(context, asset)
        )

    return check


def partitions_of_run(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetsDefinition
) -> Collection[str] | None:
    """Returns the partition keys of the run; None if the run or the asset has no partitions."""
    if asset.partitions_def is None:
        return None
    tags = context.run.tags
    if PARTITION in tags:
        return [tags[PARTITION]]
    if RANGE[0] in tags:
        ends = dg.PartitionKeyRange(*(tags[name] for name in RANGE))
        with dg.partition_loading_context(dynamic_partitions_store=context.instance):
            return asset.partitions_def.get_partition_keys_in_range(ends)
    return None


def _mend(asset: str, subject: str, found: Sequence[Violation]) -> str:
    if all(one.law == "input" for one in found):
        if any("gristmill retire" in one.found for one in found):
            return f"bring the drop back, or run: {command('retire', subject)}"
        return f"build it from the current inputs: {rules.command(asset, subject)}"
    if "/" in subject:
        return "move the file away, or mend the record"
    return f"{rules.command(asset, subject)} --rebuild; if it fails again, mend the drop"


def _consider(asset: str, subject: str, found: Sequence[Violation]) -> str:
    if all(one.law == "config" for one in found):
        build = rules.command(asset, subject)
        return f"write the line that the problem names, or take the choice of the files: {build}"
    return "nothing must be done: know it when you train on it, or mend the drop"

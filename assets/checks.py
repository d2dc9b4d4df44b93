"""Asset checks: the checks made before the commit, made again from the disk.

In a run of some partitions a check looks at those, so that its cost follows the
run and not the lake; executed by itself it looks at all that is published.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import dagster as dg

from gristmill import markdown
from gristmill.contract import Violation
from gristmill.provenance import verification
from resources import Lake

_PARTITION = "dagster/partition"
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


_DESCRIPTIONS = {
    "intact": "Every published file has the size and sha256 of its record, the record is whole, "
    "and what it was built from is still the same.",
    "lawful": "What must hold of the contents, recomputed from the published files; for a sample "
    "where that takes long, and it was done whole before the commit.",
    "noteworthy": "What whoever trains on it may want to know, though it is as its drop has it. "
    "A warning.",
}


def disk_checks(
    asset: dg.AssetsDefinition,
    below: str,
    has_laws: bool = True,
    notes: Callable[[Path], Iterable[Violation]] | None = None,
) -> list[dg.AssetChecksDefinition]:
    """The checks `intact` (bytes, records, inputs) and `lawful` (the family's laws) of one asset.

    All checks are one step, since a step takes longer than most checks.

    asset: the asset to check.
    below: folder relative to the data root that holds the asset's artifacts.
    has_laws: False leaves `lawful` out; default True.
    notes: reports what is unusual in an artifact but no violation; the check
        `noteworthy` warns about it. Default None: no such check.
    """
    name = asset.key.to_user_string()
    wanted = {"intact": True, "lawful": has_laws, "noteworthy": notes is not None}
    specs = [
        dg.AssetCheckSpec(name=check, asset=asset, description=_DESCRIPTIONS[check])
        for check in _DESCRIPTIONS
        if wanted[check]
    ]

    @dg.multi_asset_check(
        name=f"{asset.key.to_python_identifier()}_on_disk",
        specs=specs,
        can_subset=True,
    )
    def on_disk(
        context: dg.AssetCheckExecutionContext, lake: Lake
    ) -> Iterator[dg.AssetCheckResult]:
        keys = partitions_of_run(context, asset)
        for check in sorted(context.selected_asset_check_keys):
            folder = lake.root / below
            if check.name == "intact":
                found = verification.survey(folder, name, keys, check_laws=False)
            elif check.name == "lawful":
                found = verification.survey(folder, name, keys, check_bytes=False, sampled=True)
            else:
                found = verification.notes(folder, name, keys, notes or (lambda _: ()))
            yield _result(check, keys, *found)

    return [on_disk]


def partitions_of_run(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetsDefinition
) -> Collection[str] | None:
    """The partitions of the run, None where it or the asset has none."""
    if asset.partitions_def is None:
        return None
    tags = context.run.tags
    if _PARTITION in tags:
        return [tags[_PARTITION]]
    if _RANGE[0] in tags:
        ends = dg.PartitionKeyRange(*(tags[name] for name in _RANGE))
        with dg.partition_loading_context(dynamic_partitions_store=context.instance):
            return asset.partitions_def.get_partition_keys_in_range(ends)
    return None


def _result(
    check: dg.AssetCheckKey,
    keys: Collection[str] | None,
    checked: int,
    violations: Sequence[Violation],
) -> dg.AssetCheckResult:
    scope = "all that is published" if keys is None else f"partitions of the run: {_short(keys)}"
    counted = f"{checked} artifact{'' if checked == 1 else 's'}"
    listed = markdown.bullets(markdown.code(str(violation)) for violation in violations[:50])
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=check.asset_key,
        passed=not violations,
        severity=dg.AssetCheckSeverity.WARN
        if check.name == "noteworthy"
        else dg.AssetCheckSeverity.ERROR,
        description=str(violations[0]) if violations else f"{counted}, {scope}",
        metadata={
            "scope": scope,
            "artifacts": checked,
            "violations": len(violations),
            **({"listed": dg.MetadataValue.md(listed)} if listed else {}),
        },
    )


def _short(keys: Collection[str]) -> str:
    first = list(keys)[:3]
    return ", ".join(first) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")

"""Asset checks: what was checked before the commit, checked again from the disk.

In a run of some partitions a check looks at those, so that its cost follows the
run and not the lake; executed by itself it looks at all that is published.
"""

from collections.abc import Collection, Sequence

import dagster as dg

from gristmill import verification
from gristmill.verification import Finding
from resources import Lake

_PARTITION = "dagster/partition"
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def disk_checks(
    asset: dg.AssetsDefinition, below: str, has_laws: bool = True
) -> list[dg.AssetChecksDefinition]:
    """`intact` (bytes, records, inputs) and `lawful` (the family's laws) for one asset.

    below: folder relative to the data root that holds the asset's artifacts.
    """
    name = asset.key.to_user_string()

    @dg.asset_check(
        asset=asset,
        name="intact",
        description="Every published file has the size and sha256 of its record, the record is "
        "whole, and what it was built from is still the same.",
    )
    def intact(context: dg.AssetCheckExecutionContext, lake: Lake) -> dg.AssetCheckResult:
        keys = partitions_of_run(context, asset)
        return _result(keys, *verification.survey(lake.root / below, name, keys, check_laws=False))

    @dg.asset_check(
        asset=asset,
        name="lawful",
        description="What must hold of the contents, recomputed from the published files.",
    )
    def lawful(context: dg.AssetCheckExecutionContext, lake: Lake) -> dg.AssetCheckResult:
        keys = partitions_of_run(context, asset)
        return _result(keys, *verification.survey(lake.root / below, name, keys, check_bytes=False))

    return [intact, lawful] if has_laws else [intact]


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
    keys: Collection[str] | None, checked: int, findings: Sequence[Finding]
) -> dg.AssetCheckResult:
    scope = "all that is published" if keys is None else f"partitions of the run: {_short(keys)}"
    counted = f"{checked} artifact{'' if checked == 1 else 's'}"
    listed = "\n".join(f"* `{finding}`" for finding in findings[:50])
    return dg.AssetCheckResult(
        passed=not findings,
        description=str(findings[0]) if findings else f"{counted}, {scope}",
        metadata={
            "scope": scope,
            "artifacts": checked,
            "findings": len(findings),
            **({"listed": dg.MetadataValue.md(listed)} if listed else {}),
        },
    )


def _short(keys: Collection[str]) -> str:
    first = list(keys)[:3]
    return ", ".join(first) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")

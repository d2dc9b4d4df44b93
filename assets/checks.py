"""Asset checks: repeat the checks from before the commit on the published files.

In a run of some partitions, a check looks at those partitions only, so that its cost
depends on the run and not on the data root. What the same run built was hashed and checked
before its commit: unless size or time of a file changed, it is not read again. Executed by
itself, a check reads every published artifact of the asset.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from gristmill import markdown
from gristmill.contract import Violation
from gristmill.provenance import verification
from resources import Lake

_PARTITION = "dagster/partition"
_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


_DESCRIPTIONS = {
    "intact": "Every published file has the size and sha256 that its record states, the record is "
    "complete, and the inputs of the artifact have not changed. What the same run built was hashed "
    "before its commit: it is not read again if the files kept size and time.",
    "lawful": "The contents obey the laws of the asset, recomputed from the published files. Where "
    "that takes long, the check takes a sample; the full check ran before the commit. Its verdict "
    "counts for what the same run built.",
    "noteworthy": "Unusual contents that come from the drop and break no law, for whoever trains "
    "on them. This check only warns.",
}


def disk_checks(
    asset: dg.AssetsDefinition,
    below: str,
    has_laws: bool = True,
    notes: Callable[[Path], Iterable[Violation]] | None = None,
) -> list[dg.AssetChecksDefinition]:
    """Returns the checks `intact` (bytes, records, inputs) and `lawful` (laws) of one asset.

    All checks share one step, since a step takes longer than most checks.

    asset: the asset to check.
    below: folder relative to the data root that holds the asset's artifacts.
    has_laws: False leaves `lawful` out; default True.
    notes: takes the folder of an artifact and returns what is unusual in it without being a
        violation; the check `noteworthy` warns about it. Default None: no such check.
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
        since = _start_of(context)
        for check in sorted(context.selected_asset_check_keys):
            folder = lake.root / below
            if check.name == "intact":
                counted = verification.survey(
                    folder, name, keys, check_laws=False, committed_since=since
                )
            elif check.name == "lawful":
                counted = verification.survey(
                    folder, name, keys, check_bytes=False, sampled=True, committed_since=since
                )
            else:
                counted = verification.notes(folder, name, keys, notes or (lambda _: ()))
            yield _result(check, keys, *counted)

    return [on_disk]


def _start_of(context: dg.AssetCheckExecutionContext) -> datetime | None:
    """When the run started; None if the instance does not know, so that everything is read."""
    records = context.instance.get_run_records(dg.RunsFilter(run_ids=[context.run.run_id]), limit=1)
    start = records[0].start_time if records else None
    return None if start is None else datetime.fromtimestamp(start, UTC)


def partitions_of_run(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetsDefinition
) -> Collection[str] | None:
    """Returns the partition keys of the run; None if the run or the asset has no partitions."""
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
    scope = (
        "everything published" if keys is None else f"partitions of the run: {_first_keys(keys)}"
    )
    counted = f"{checked} artifact{'' if checked == 1 else 's'}"
    listed = markdown.bullets(markdown.code(str(violation)) for violation in violations)
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=check.asset_key,
        passed=not violations,
        severity=dg.AssetCheckSeverity.WARN
        if check.name == "noteworthy"
        else dg.AssetCheckSeverity.ERROR,
        # The UI shows descriptions as Markdown.
        description=markdown.escape(str(violations[0]) if violations else f"{counted}, {scope}"),
        metadata={
            "scope": scope,
            "artifacts": checked,
            "violations": len(violations),
            **({"listed": dg.MetadataValue.md(listed)} if listed else {}),
        },
    )


def _first_keys(keys: Collection[str]) -> str:
    first = list(keys)[:3]
    return ", ".join(first) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")

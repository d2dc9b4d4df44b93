"""Version tags for events of many partitions in one run.

For a step of one partition Dagster writes these tags itself. For several it
knows only one data version, so we say for each partition what it was built
from; without the tags of its inputs a partition would show as stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import dagster as dg

_MATERIALIZED = dg.DagsterEventType.ASSET_MATERIALIZATION
# Partitions asked for at once: what a statement of SQLite takes is bounded.
_AT_ONCE = 1000

DATA_VERSION = "dagster/data_version"
_USER_PROVIDED = "dagster/data_version_is_user_provided"
_CODE_VERSION = "dagster/code_version"
_INPUT_VERSION = "dagster/input_data_version"
_INPUT_POINTER = "dagster/input_event_pointer"
# What Dagster itself writes for an input that has no version or no event.
_NO_VERSION, _NO_POINTER = "INITIAL", "NULL"


def tagger(
    context: dg.AssetExecutionContext, keys: Sequence[str]
) -> Callable[[str, str], dict[str, str]]:
    """A function from (partition key, one of `keys`; data version) to the tags of its event.

    Upstream assets with the same partitions are matched key by key, upstream
    assets without partitions by their latest event.
    """
    spec = context.assets_def.get_asset_spec(context.asset_key)
    inputs = {dep.asset_key: _input(context.instance, dep.asset_key, keys) for dep in spec.deps}

    def tags(key: str, data_version: str) -> dict[str, str]:
        found = {
            DATA_VERSION: data_version,
            _USER_PROVIDED: "true",
            _CODE_VERSION: spec.code_version or context.run.run_id,
        }
        for asset, version_of in inputs.items():
            name = asset.to_user_string()
            version, pointer = version_of(key)
            found[f"{_INPUT_VERSION}/{name}"] = version
            found[f"{_INPUT_POINTER}/{name}"] = pointer
        return found

    return tags


def latest(
    instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str]
) -> dict[str, tuple[str, int]]:
    """Data version and storage id of the latest materialization, of those `keys` that have one."""
    found = {}
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        events = instance.get_latest_storage_id_by_partition(asset, _MATERIALIZED, set(some))
        versions = instance.event_log_storage.get_latest_tags_by_partition(
            asset, _MATERIALIZED, [DATA_VERSION], some
        )
        for key, event in events.items():
            found[key] = versions.get(key, {}).get(DATA_VERSION, _NO_VERSION), event
    return found


def _input(
    instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str]
) -> Callable[[str], tuple[str, str]]:
    """Version and pointer of `asset` as an input, by partition key."""
    found = latest(instance, asset, keys)

    @cache
    def whole() -> tuple[str, str]:
        records = instance.fetch_materializations(asset, limit=1).records
        if not records:
            return _NO_VERSION, _NO_POINTER
        event = records[0].asset_materialization
        version = (event.tags or {}).get(DATA_VERSION) if event else None
        return version or _NO_VERSION, str(records[0].storage_id)

    def of(key: str) -> tuple[str, str]:
        if key not in found:
            return whole()
        version, event = found[key]
        return version, str(event)

    return of

"""Version tags for events of many partitions in one run.

For a step of one partition Dagster writes these tags itself. For several it
knows only one data version, so we say for each partition what it was built
from; without the tags of its inputs a partition would show as stale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import dagster as dg

DATA_VERSION = "dagster/data_version"
_USER_PROVIDED = "dagster/data_version_is_user_provided"
_CODE_VERSION = "dagster/code_version"
_INPUT_VERSION = "dagster/input_data_version"
_INPUT_POINTER = "dagster/input_event_pointer"
# What Dagster itself writes for an input that has no version or no event.
_NO_VERSION, _NO_POINTER = "INITIAL", "NULL"


def tagger(context: dg.AssetExecutionContext) -> Callable[[str, str], dict[str, str]]:
    """A function from (partition key, data version) to the tags of its event.

    Upstream assets with the same partitions are matched key by key, upstream
    assets without partitions by their latest event.
    """
    spec = context.assets_def.get_asset_spec(context.asset_key)
    inputs = {dep.asset_key: _latest(context.instance, dep.asset_key) for dep in spec.deps}

    def tags(key: str, data_version: str) -> dict[str, str]:
        found = {
            DATA_VERSION: data_version,
            _USER_PROVIDED: "true",
            _CODE_VERSION: spec.code_version or context.run.run_id,
        }
        for asset, latest in inputs.items():
            name = asset.to_user_string()
            version, pointer = latest(key)
            found[f"{_INPUT_VERSION}/{name}"] = version
            found[f"{_INPUT_POINTER}/{name}"] = pointer
        return found

    return tags


def _latest(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Callable[[str], tuple[str, str]]:
    """Data version and storage id of the latest event of `asset`, by partition key."""

    def fetch(partition: str | None) -> tuple[str, str] | None:
        wanted = dg.AssetRecordsFilter(
            asset_key=asset, asset_partitions=None if partition is None else [partition]
        )
        records = instance.fetch_materializations(wanted, limit=1).records
        if not records:
            return None
        event = records[0].asset_materialization
        version = (event.tags or {}).get(DATA_VERSION) if event else None
        return version or _NO_VERSION, str(records[0].storage_id)

    @cache
    def whole() -> tuple[str, str]:
        return fetch(None) or (_NO_VERSION, _NO_POINTER)

    return lambda key: fetch(key) or whole()

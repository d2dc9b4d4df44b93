"""How runs have answered a drop: with what was built, or with the reason why it is not built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import dagster as dg

from assets.publishing import NOT_BUILT

_KEYS_IN_QUERY: Final = 1000


def newest_answers(
    instance: dg.DagsterInstance, targets: Sequence[dg.AssetsDefinition], keys: Sequence[str]
) -> dict[dg.AssetKey, dict[str, int]]:
    """Returns the number of the newest answer for each partition of some assets.

    keys: partition keys; those without an answer are left out of the result.

    An answer is a materialization, or a later report "not built", such as that of the token shards
    of a corpus whose terms forbid training. What is built from such a partition has its answer,
    since its step is skipped.
    """
    answers: dict[dg.AssetKey, dict[str, int]] = {}
    not_built: dict[dg.AssetKey, dict[str, int]] = {}
    for asset in targets:
        made = newest_events(instance, asset.key, keys)
        reports = _not_built(instance, asset.key, made, keys)
        for each in inputs_among(asset, targets):
            for key, event in not_built.get(each.key, {}).items():
                if event > max(made.get(key, 0), reports.get(key, 0)):
                    reports[key] = event
        not_built[asset.key] = reports
        answers[asset.key] = made | reports
    return answers


def newest_events(
    instance: dg.DagsterInstance,
    asset: dg.AssetKey,
    keys: Sequence[str],
    kind: dg.DagsterEventType = dg.DagsterEventType.ASSET_MATERIALIZATION,
) -> dict[str, int]:
    """Returns the number of each partition's newest event; partitions without one are left out."""
    found: dict[str, int] = {}
    for start in range(0, len(keys), _KEYS_IN_QUERY):
        some = set(keys[start : start + _KEYS_IN_QUERY])
        found |= instance.get_latest_storage_id_by_partition(asset, kind, some)
    return found


def inputs_among(
    asset: dg.AssetsDefinition, among: Sequence[dg.AssetsDefinition]
) -> list[dg.AssetsDefinition]:
    """Returns those of some assets that an asset is built from."""
    keys = {dep.asset_key for spec in asset.specs for dep in spec.deps}
    return [each for each in among if each.key in keys]


def _not_built(
    instance: dg.DagsterInstance, asset: dg.AssetKey, made: Mapping[str, int], keys: Sequence[str]
) -> dict[str, int]:
    """The number of each newest observation that says "not built" after what was `made`."""
    seen = newest_events(instance, asset, keys, dg.DagsterEventType.ASSET_OBSERVATION)
    key_of = {event: key for key, event in seen.items() if event > made.get(key, 0)}
    events = list(key_of)
    found: dict[str, int] = {}
    for start in range(0, len(events), _KEYS_IN_QUERY):
        some = events[start : start + _KEYS_IN_QUERY]
        wanted = dg.AssetRecordsFilter(asset, storage_ids=some)
        for record in instance.fetch_observations(wanted, limit=len(some)).records:
            shown = record.asset_observation
            status = shown.metadata.get("status") if shown else None
            if status is not None and status.value == NOT_BUILT:
                found[key_of[record.storage_id]] = record.storage_id
    return found

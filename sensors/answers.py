"""How runs have answered a drop: with what was built, or with the reason why it is not built."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from assets.publishing import NOT_BUILT
from assets.versions import latest_events, observed_since


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
        made = latest_events(instance, asset.key, keys)
        said = observed_since(instance, asset.key, keys)
        status = {key: seen.metadata.get("status") for key, seen in said.items()}
        refused = [key for key, each in status.items() if key and each and each.value == NOT_BUILT]
        observed = dg.DagsterEventType.ASSET_OBSERVATION
        reports = latest_events(instance, asset.key, refused, observed)
        for each in inputs_among(asset, targets):
            for key, event in not_built.get(each.key, {}).items():
                if event > max(made.get(key, 0), reports.get(key, 0)):
                    reports[key] = event
        not_built[asset.key] = reports
        answers[asset.key] = made | reports
    return answers


def inputs_among(
    asset: dg.AssetsDefinition, among: Sequence[dg.AssetsDefinition]
) -> list[dg.AssetsDefinition]:
    """Returns those of some assets that an asset is built from."""
    keys = {dep.asset_key for spec in asset.specs for dep in spec.deps}
    return [each for each in among if each.key in keys]

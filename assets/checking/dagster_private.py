"""What Dagster does not export and assets need: imported here, with a way to do without it."""

from __future__ import annotations

from typing import Any

import dagster as dg

try:
    from dagster._core.definitions.asset_checks.asset_check_evaluation import (
        AssetCheckEvaluationTargetMaterializationData,
    )

    HAS_TARGET = True
    """Whether the evaluation of a check can name the materialization that it is about."""
except ImportError:
    HAS_TARGET = False

Target = Any
"""The materialization that an evaluation of a check is about."""


def newest_target(instance: dg.DagsterInstance, asset: dg.AssetKey) -> Target | None:
    """Returns the newest materialization of an asset as the target of an evaluation.

    None without a materialization, and where HAS_TARGET is False: Dagster then compares the time of
    the evaluation with that of the newest materialization.
    """
    records = instance.fetch_materializations(asset, limit=1).records if HAS_TARGET else []
    if not records:
        return None
    return AssetCheckEvaluationTargetMaterializationData(
        storage_id=records[0].storage_id,
        run_id=records[0].run_id,
        timestamp=records[0].timestamp,
    )

"""What tests of assets share: the reason of a failed run, the digest of a file."""

import hashlib
from pathlib import Path

import dagster as dg


def failure(result: dg.ExecuteInProcessResult) -> str:
    assert not result.success
    return str(result.get_step_failure_events()[0].step_failure_data.user_failure_data.description)


def not_built(result: dg.ExecuteInProcessResult) -> str:
    """The reason why a run without a failure built nothing."""
    assert result.success
    assert not result.get_asset_materialization_events()
    (event,) = result.get_asset_observation_events()
    metadata = event.asset_observation_data.asset_observation.metadata
    assert metadata["status"].value == "not built"
    return str(metadata["reason"].value)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""What tests of assets share: the reason of a failed run, the digest of a file."""

import hashlib
from importlib import import_module
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


def built(key: str) -> dg.AssetsDefinition:
    """The definition of an asset that Gristmill builds."""
    return built_by(key.partition("/")[0].removesuffix("_smoke"))[key]


def built_by(family: str) -> dict[str, dg.AssetsDefinition]:
    """The definitions of a family's assets that Gristmill builds, by key."""
    assets = import_module(f"assets.{family}").FAMILY.assets
    built = (each for each in assets if isinstance(each, dg.AssetsDefinition))
    return {each.key.to_user_string(): each for each in built}

"""What tests of assets share: runs and the reason of a failed one, artifacts of one text."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg

from assets.family import family_of
from gristmill.contract import FileNote, Summary
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build
from resources import Lake

MOST_BYTES = 100_000
"""Of an event, as Dagster stores it, whatever a drop holds."""

TOKENIZERS = family_of("tokenizers").assets[1:3]
"""The assets of the pinned vocabularies."""


def materialized(
    asset: dg.AssetsDefinition,
    assets: Sequence[Any],
    lake: Lake,
    instance: dg.DagsterInstance,
    key: str | None = None,
    tags: Mapping[str, str] | None = None,
    **config: Any,
) -> dg.ExecuteInProcessResult:
    """What a run of one asset, with its checks, ends with; its errors are not raised."""
    return dg.materialize(
        assets,
        selection=dg.AssetSelection.assets(asset),
        instance=instance,
        resources={"lake": lake},
        partition_key=key,
        tags=tags,
        run_config={"ops": {asset.op.name: {"config": config}}} if config else None,
        raise_on_error=False,
    )


def evaluated(
    checks: Sequence[dg.AssetChecksDefinition],
    assets: Sequence[Any],
    lake: Lake,
    instance: dg.DagsterInstance,
) -> list[dg.AssetCheckEvaluation]:
    """What checks find that are executed without a build."""
    result = dg.materialize(
        [*assets, *checks],
        selection=dg.AssetSelection.checks(*checks),
        instance=instance,
        resources={"lake": lake},
    )
    return list(result.get_asset_check_evaluations())


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    assert result.success
    (event,) = result.get_asset_materialization_events()
    found = event.step_materialization_data.materialization.metadata
    return {name: value.value for name, value in found.items()}


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
    return built_by(key.partition("/")[0].removesuffix("_smoke"))[key]


def built_by(family: str) -> dict[str, dg.AssetsDefinition]:
    """The definitions of a family's assets that Gristmill builds, by key."""
    assets = import_module(f"assets.{family}").FAMILY.assets
    built = (each for each in assets if isinstance(each, dg.AssetsDefinition))
    return {each.key.to_user_string(): each for each in built}


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def words_build(
    root: Path,
    artifact: str,
    asset: str,
    key: str | None,
    text: Callable[[], str],
    inputs: Sequence[Input] = (),
) -> Build:
    """A build of `words.txt`, whose text is asked for when it is written."""

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "words.txt").write_text(text())
        return Summary(files={"words.txt": FileNote(rows=1)})

    return Build(root, artifact, asset, key, "1", Config(), list(inputs), make)

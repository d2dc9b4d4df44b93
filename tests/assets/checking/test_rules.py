"""The check `noteworthy`: equal raw files of a partition, and of two partitions of an asset."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import definitions
from assets import choices
from assets.checking.rules import CHECKED
from assets.family import disk_checks
from assets.publishing import BATCH, publish_asset
from gristmill import families
from gristmill.contract import Violation
from gristmill.families import Kind
from gristmill.provenance import Record, raw_inputs
from gristmill.publish.build import Build
from resources import Lake
from tests.assets.helpers import words_build

KEYS = ["one", "two"]
partitions = dg.StaticPartitionsDefinition(KEYS)


def _build(lake: Lake, key: str, asset: str = "toy") -> Build:
    files = sorted((lake.root / "drops/toy" / key).iterdir())
    inputs = raw_inputs.raw_inputs(lake.root, files, "toy/raw", key, known={})
    return words_build(lake.root, f"toy/{key}", asset, key, lambda: f"{key}\n", inputs)


@dg.asset(partitions_def=partitions, code_version="1", backfill_policy=BATCH, output_required=False)
def toy(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    yield from publish_asset(context, lambda key: _build(lake, str(key)))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    texts = {"one": {"a": "x", "b": "y", "c": "x"}, "two": {"d": "y", "e": "z"}}
    for key, files in texts.items():
        (tmp_path / "drops/toy" / key).mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / "drops/toy" / key / name).write_text(text)
    return Lake(data_root=str(tmp_path))


def _evaluate(lake: Lake, *keys: str, **options: Any) -> dg.AssetCheckEvaluation:
    """Build partitions one by one with the check; the last evaluation of `noteworthy`."""
    checks = disk_checks(toy, "toy", has_laws=False, **options)
    job = dg.define_asset_job("all", dg.AssetSelection.all())
    defs = dg.Definitions([toy], asset_checks=checks, jobs=[job], resources={"lake": lake})
    with dg.DagsterInstance.ephemeral() as instance:
        for key in keys:
            done = defs.resolve_job_def("all").execute_in_process(
                instance=instance, partition_key=key
            )
        (found,) = (
            item for item in done.get_asset_check_evaluations() if item.check_name == "noteworthy"
        )
    return found


def _said(evaluation: dg.AssetCheckEvaluation) -> str:
    return str(evaluation.metadata["listed"].value).replace("\\", "").replace("\u200b", "")


def test_equal_raw_files_and_one_of_two_partitions_are_named(lake: Lake) -> None:
    assert _evaluate(lake, "two", has_config=True).passed
    found = _evaluate(lake, "one", has_config=True)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    rule = "raw files with the bytes of another one, 1: drops/toy/one/a = drops/toy/one/c"
    assert rule in _said(found)
    (lake.root / "drops/toy/one/c").unlink()
    assert _evaluate(lake, "one", "two", has_config=True).passed
    found = _evaluate(lake, "two", across=True)
    assert not found.passed
    assert "drops/toy/two/d has the bytes of drops/toy/one/b, of one" in _said(found)
    (lake.root / "drops/toy/two/d").write_text("other")
    assert _evaluate(lake, "two", across=True).passed


def test_what_a_record_counts_is_a_warning(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(record: Record, _: Path) -> Iterator[Violation]:
        yield Violation("law", record.artifact, f"unusual: {record.partition}")

    monkeypatch.setattr(families, "kind_of_asset", lambda key: Kind(key, counted=counted))
    found = _evaluate(lake, "two", counted=counted)
    assert not found.passed
    assert "unusual: two" in _said(found)


BUILT = [
    asset
    for family in definitions.families()
    for asset in family.assets
    if isinstance(asset, dg.AssetsDefinition)
]


def test_every_built_asset_says_whether_it_was_built_is_intact_and_is_as_files_choose():
    assert {asset.key for asset in BUILT} <= set(CHECKED)
    assert all({"built", "intact"} <= set(item.rules) for item in CHECKED.values())
    checked = [CHECKED[asset.key] for asset in BUILT]
    warned = {item.name for item in checked if "noteworthy" in item.rules}
    # The raw file of a month is compared with those of the other months.
    assert warned == set(choices._known()) | {"chess/elite_pgn"}
    rules = [item.rules["noteworthy"] for item in checked if "noteworthy" in item.rules]
    assert {rule.severity for rule in rules} == {dg.AssetCheckSeverity.WARN}
    assert not any(rule.blocking for rule in rules)

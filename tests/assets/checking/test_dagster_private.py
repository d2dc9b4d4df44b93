"""What assets import that Dagster does not export, is where we import it from."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator

import dagster as dg
import pytest
from sqlalchemy.exc import IntegrityError

from assets.checking import dagster_private
from assets.checking.arrivals import arrivals_check, changed_evaluation
from assets.inbox import Inbox
from tests.architecture.graph import imports
from tests.paths import CHECKOUT

PLACE = "dagster._core.definitions.asset_checks.asset_check_evaluation"
MODULES = {"assets.checking.dagster_private", "commands.dagster_private"}

PARTITIONS = dg.DynamicPartitionsDefinition(name="toy_drops")
RAW = dg.AssetSpec(["toy", "raw_drop"], partitions_def=PARTITIONS)
INBOX = Inbox("toy", RAW.key, PARTITIONS, [], lambda _: None)


@pytest.fixture
def without_target(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A release of Dagster that has moved the class."""
    with monkeypatch.context() as patched:
        patched.delattr(f"{PLACE}.AssetCheckEvaluationTargetMaterializationData")
        importlib.reload(dagster_private)
        yield
    importlib.reload(dagster_private)


def test_dagster_does_not_keep_a_second_evaluation_of_a_partition_without_a_run(
    instance: dg.DagsterInstance,
) -> None:
    """If this fails: Dagster's own partitioned checks may carry now. Try them in the UI: the
    badge, the lineage and a partition without a verdict, and the time of 12,000 pairs.
    """
    again = dg.AssetCheckEvaluation(
        asset_key=RAW.key, check_name="c", passed=True, metadata={}, partition="p"
    )
    instance.report_runless_asset_event(again)
    with pytest.raises(IntegrityError):
        instance.report_runless_asset_event(again)


def test_this_release_of_dagster_has_targets_of_evaluations(instance: dg.DagsterInstance) -> None:
    """If this fails: find where the class went, and import it from there."""
    assert dagster_private.HAS_TARGET
    assert dagster_private.newest_target(instance, RAW.key) is None
    for key in ("d1", "d2"):
        instance.report_runless_asset_event(dg.AssetMaterialization(RAW.key, partition=key))
    (newest,) = instance.fetch_materializations(RAW.key, limit=1).records
    target = dagster_private.newest_target(instance, RAW.key)
    assert target is not None
    assert (target.storage_id, target.run_id, target.timestamp) == (
        newest.storage_id,
        newest.run_id,
        newest.timestamp,
    )


@pytest.mark.usefixtures("without_target")
def test_without_targets_a_check_is_reported_without_one_and_once(
    instance: dg.DagsterInstance,
) -> None:
    assert not dagster_private.HAS_TARGET
    instance.report_runless_asset_event(dg.AssetMaterialization(RAW.key, partition="d1"))
    assert dagster_private.newest_target(instance, RAW.key) is None
    evaluation = changed_evaluation(instance, INBOX, [])
    assert evaluation is not None and evaluation.target_materialization_data is None
    instance.report_runless_asset_event(evaluation)
    assert changed_evaluation(instance, INBOX, []) is None
    assert arrivals_check(INBOX).check_keys


def test_without_targets_the_code_location_is_loaded() -> None:
    program = (
        f"import dagster, {PLACE} as place\n"
        "del place.AssetCheckEvaluationTargetMaterializationData\n"
        "import definitions\n"
        "definitions.build_defs().get_repository_def()\n"
        "from assets.checking.dagster_private import HAS_TARGET\n"
        "assert not HAS_TARGET\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_dagster_does_not_export_is_imported_by_two_modules_alone() -> None:
    found = {
        name
        for name, forms in imports(CHECKOUT).items()
        for candidates in forms
        if any(part.startswith("_") for part in candidates[-1].split("."))
        and candidates[-1].startswith("dagster")
    }
    assert found == MODULES

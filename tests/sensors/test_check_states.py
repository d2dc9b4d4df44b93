"""The sensor `check_states`: what a killed run leaves behind is said again as it stood."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

import definitions
from assets.checking.verdict_file import opened
from assets.checking.verdicts import Verdict
from resources import Lake
from sensors.check_states import check_states


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


PACK = dg.AssetKey(["macroxue", "pack"])
NOTEWORTHY = dg.AssetCheckKey(PACK, "noteworthy")


def tick(instance: dg.DagsterInstance, lake: Lake) -> str:
    context = dg.build_sensor_context(instance=instance, resources={"lake": lake})
    result = check_states(context)
    assert isinstance(result, dg.SkipReason)
    return str(result.skip_message)


def test_checks_of_a_killed_run_show_what_stood(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    lake = Lake(data_root=str(tmp_path))
    instance.add_dynamic_partitions("macroxue_drops", ["d1", "d2"])
    with opened(tmp_path) as verdicts:
        verdicts.register_all("macroxue/pack", {})
        verdicts.keep("macroxue/pack", "noteworthy", [Verdict("d1", "", "odd", "know it")])
    job = definitions.build_defs().resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(
        job.get_subset(asset_selection={PACK}), tags={"dagster/partition": "d2"}
    )
    assert tick(instance, lake) == "every check shows what it last found"  # it is under way
    instance.report_run_failed(run)
    said = tick(instance, lake)
    assert "reported again what stood: " in said
    assert "macroxue/pack:noteworthy" in said
    storage = instance.event_log_storage
    shown = storage.get_latest_asset_check_execution_by_key([NOTEWORTHY])[NOTEWORTHY].evaluation
    assert shown is not None
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert tick(instance, lake) == "every check shows what it last found"
    instance.delete_dynamic_partition("macroxue_drops", "d1")
    assert tick(instance, lake) == "reported again what stood: macroxue/pack:noteworthy"


def test_it_is_one_of_the_definitions_and_runs_by_itself() -> None:
    sensor = definitions.build_defs().get_repository_def().get_sensor_def("check_states")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING

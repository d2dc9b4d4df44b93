"""The schedules of the reasoning family: what they ask for, and that they are off."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.reasoning import reasoning_days
from assets.reasoning.schedules import (
    reasoning_audit_sample,
    reasoning_daily_report,
    reasoning_weekly_audits,
)
from definitions import build_defs
from gristmill.reasoning.builds import today
from resources import Lake


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


@pytest.mark.parametrize(
    ("name", "job", "cron"),
    [
        ("reasoning_daily_report", "reasoning_report", "0 5 * * *"),
        ("reasoning_weekly_audits", "reasoning_audit_sample", "0 6 * * 1"),
    ],
)
def test_a_schedule_is_off_until_it_is_switched_on_and_runs_its_job(
    name: str, job: str, cron: str
) -> None:
    schedule = build_defs().get_repository_def().get_schedule_def(name)
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert (schedule.job_name, schedule.cron_schedule) == (job, cron)
    assert schedule.execution_timezone == "UTC"


def test_the_daily_schedule_asks_for_the_current_day_once(instance: dg.DagsterInstance) -> None:
    context = dg.build_schedule_context(
        instance=instance, repository_def=build_defs().get_repository_def()
    )
    (request,) = reasoning_daily_report.evaluate_tick(context).run_requests or ()
    assert request.partition_key == request.run_key == today().isoformat()


def test_the_weekly_schedule_runs_the_job_without_a_partition(
    instance: dg.DagsterInstance,
) -> None:
    context = dg.build_schedule_context(instance=instance)
    (request,) = reasoning_weekly_audits.evaluate_tick(context).run_requests or ()
    assert request.partition_key is None


def test_the_weekly_job_reports_what_it_draws(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = dg.AssetKey(["reasoning", "alignment"])
    drawn = [dg.AssetObservation(key, partition=name) for name in ("gsm8k__test", "wiqa__test")]
    monkeypatch.setattr("assets.reasoning.schedules.observations", lambda _: iter(drawn))
    done = reasoning_audit_sample.execute_in_process(
        instance=instance, resources={"lake": Lake(data_root=str(tmp_path))}
    )
    seen = [
        event.asset_observation_data.asset_observation
        for event in done.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION
    ]
    assert [(each.asset_key, each.partition) for each in seen] == [
        (key, "gsm8k__test"),
        (key, "wiqa__test"),
    ]


def test_the_days_of_the_reports_end_with_the_current_one() -> None:
    assert reasoning_days.get_last_partition_key() == today().isoformat()
    assert reasoning_days.timezone == "UTC"

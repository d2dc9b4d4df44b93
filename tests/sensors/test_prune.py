"""The schedule that prunes the instance: on, what its job does, and that nothing is built again."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from assets.history import retention
from bench.large_instance import PACK, add_run
from definitions import build_defs
from sensors.prune import PruneRun
from tests.sensors.test_unfinished import PARTITIONS, Toy, _toy, pack, values  # noqa: F401


def test_the_schedule_is_on_and_says_its_bounds() -> None:
    schedule = build_defs().resolve_schedule_def("prune_nightly")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert schedule.cron_schedule == "30 3 * * *"
    assert "runs of 30 days stay, and no more than 1,000" in str(schedule.description)
    assert schedule.job_name == "prune"


def prune(instance: dg.DagsterInstance, **config: int) -> dg.ExecuteInProcessResult:
    """The job of the schedule, in this process."""
    job = build_defs().resolve_job_def("prune")
    chosen = {"ops": {"prune_history": {"config": config}}}
    return job.execute_in_process(instance=instance, run_config=chosen)


def test_the_job_prunes_by_its_config_and_keeps_its_own_run() -> None:
    with dg.instance_for_test() as instance:
        runs = [add_run(instance, PACK, ["a"]) for _ in range(3)]
        done = prune(instance, keep_runs=1)
        assert {run.run_id for run in instance.get_runs()} == {runs[2], done.run_id}


def test_a_wrong_number_is_refused() -> None:
    for wrong in ({"keep_days": 0}, {"keep_runs": -1}):
        with pytest.raises(ValueError, match=rf"{next(iter(wrong))}\n.*should be"):
            PruneRun(**wrong)


@pytest.mark.slow
def test_300_partitions_stay_green_and_no_run_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"d{number:03}" for number in range(300)]
    with dg.DagsterInstance.ephemeral() as instance:
        toy = Toy(tmp_path, instance)
        for key in keys:
            toy.land(key)
        asked = [key for _ in range(17) for key, _ in toy.tick()]
        assert set(asked) == set(keys)
        for some in (keys[:100], keys[100:200], keys[200:], keys[:150]):
            for asset in (pack, values):
                add_run(instance, asset.key, some)
        assert toy.tick() == []
        clock = SimpleNamespace(time=lambda: time.time() + 40 * 86_400)
        monkeypatch.setattr(retention, "time", clock)
        prune(instance)
        assert instance.get_runs_count(dg.RunsFilter(job_name="__ASSET_JOB")) == 6
        for asset in (pack, values):
            states = instance.get_status_by_partition(asset.key, keys, PARTITIONS) or {}
            assert len(states) == 300
            assert {state and state.value for state in states.values()} == {"MATERIALIZED"}
        # The second time the sensor has no cursor, so that it asks the instance alone.
        for _ in range(2):
            assert [toy.tick(), toy.tick()] == [[], []]
            toy.look.cursor = None

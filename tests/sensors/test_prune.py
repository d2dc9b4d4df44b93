"""The schedule that prunes the instance: on, and what its job does."""

from __future__ import annotations

import dagster as dg
import pytest

from bench.large_instance import PACK, add_run
from definitions import build_defs
from sensors.prune import PruneRun, prune_history


def test_the_schedule_is_on_and_says_its_bounds() -> None:
    schedule = build_defs().resolve_schedule_def("prune_nightly")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    assert schedule.cron_schedule == "30 3 * * *"
    assert "runs and ticks of 30 days stay, and of the runs no more than 1,000" in str(
        schedule.description
    )
    assert schedule.job_name == "prune"
    assert build_defs().resolve_job_def("prune").description


def test_the_job_prunes_by_its_config_and_keeps_its_own_run() -> None:
    with dg.instance_for_test() as instance:
        runs = [add_run(instance, PACK, ["a"]) for _ in range(3)]
        done = (
            build_defs()
            .resolve_job_def("prune")
            .execute_in_process(
                instance=instance,
                run_config={"ops": {"prune_history": {"config": {"keep_runs": 1}}}},
            )
        )
        assert done.success
        assert {run.run_id for run in instance.get_runs()} == {runs[2], done.run_id}


@pytest.mark.parametrize(
    "wrong",
    [{"keep_days": 0}, {"keep_days": 36_501}, {"keep_runs": -1}, {"keep_runs": 10_000_001}],
)
def test_a_wrong_number_fails_before_anything_is_removed(wrong: dict[str, int]) -> None:
    with dg.instance_for_test() as instance:
        context = dg.build_op_context(instance=instance)
        with pytest.raises(
            dg.Failure, match="must be from 1 to 36,500 and keep_runs from 0"
        ) as failed:
            prune_history(context, PruneRun(**wrong))
        assert not failed.value.allow_retries, "the numbers stay wrong"

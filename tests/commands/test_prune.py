"""`gristmill prune`: what it says. See also `tests/assets/history/test_retention.py`."""

from __future__ import annotations

import dagster as dg

from bench.large_instance import PACK, add_run
from tests.commands.drops import Command, printed


def test_it_says_what_it_removed_and_the_sizes(run: Command, instance: dg.DagsterInstance) -> None:
    runs = [add_run(instance, PACK, ["a"]) for _ in range(3)]
    counted = printed(run("prune", "--keep-runs", "1", "--dry-run"))
    assert "would be removed: 2 runs, the logs of 0 more, 0 ticks" in counted
    assert "1 runs stay" in counted
    assert len(instance.get_runs()) == 3
    said = printed(run("prune", "--keep-runs", "1"))
    assert "removed: 2 runs" in said
    assert "the instance had " in said and " MB, now " in said
    assert [one.run_id for one in instance.get_runs()] == [runs[2]]
    assert "removed: 0 runs" in run("prune").output


def test_a_run_under_way_is_named_as_the_reason_for_the_size(
    run: Command, instance: dg.DagsterInstance
) -> None:
    for _ in range(2):
        add_run(instance, PACK, ["a"])
    add_run(instance, PACK, ["b"], status=dg.DagsterRunStatus.STARTED)
    done = run("prune", "--keep-runs", "0")
    assert "keep their size for now (runs are under way)" in done.output


def test_numbers_that_are_none_are_usage_errors(run: Command) -> None:
    wrong = {"--keep-days": ("0", "36501", "x"), "--keep-runs": ("-1", "10000001")}
    for words in ((option, value) for option, values in wrong.items() for value in values):
        assert run("prune", *words).exit_code == 2

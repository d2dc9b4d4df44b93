"""The log of `gristmill ui`: what it takes from the lines of Dagster's programs."""

from __future__ import annotations

import pytest

from commands.serving.short_log import ShortLog

RUN = "9a4f7063-0efd-40ab-a3c5-edb809e5f5b3"


def line(logger: str, level: str, text: str) -> str:
    """A line of Dagster's log, in colours as it writes them."""
    return f"\x1b[32m2026-11-27 01:44:28 +0000\x1b[0m - {logger} - \x1b[34m{level}\x1b[0m - {text}"


def event(kind: str, text: str, step: str = "") -> str:
    return line("dagster", "DEBUG", f"__ASSET_JOB - {RUN} - 28448 - {step}{kind} - {text}")


def sensor(text: str) -> str:
    return line("dagster.daemon.SensorDaemon", "INFO", text)


def shown(*lines: str) -> list[str]:
    log = ShortLog()
    return [each for given in lines for each in log.lines(given)]


def published(asset: str) -> str:
    return event("ASSET_MATERIALIZATION", "5 rows, in a\\_b", step=f"{asset} - ")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("RUN_SUCCESS", "succeeded: synth/kd_manifest"),
        ("RUN_FAILURE", f"failed: synth/kd_manifest, see /runs/{RUN}"),
        ("RUN_CANCELED", "was stopped: synth/kd_manifest"),
    ],
)
def test_a_run_has_one_line_which_names_what_it_published(kind: str, said: str) -> None:
    lines = [
        event("STEP_START", 'Started execution of step "a".', step="a - "),
        published("synth__kd_manifest"),
        published("synth__kd_manifest"),
        event(kind, "Finished."),
    ]
    assert shown(*lines) == [f"01:44:28 run 9a4f7063 {said}"]


def test_of_many_assets_three_are_named() -> None:
    lines = [published(f"a__{number}") for number in range(5)]
    end = event("RUN_SUCCESS", "Finished.")
    assert shown(*lines[:3], end) == ["01:44:28 run 9a4f7063 succeeded: a/0, a/1, a/2"]
    assert shown(*lines, end) == ["01:44:28 run 9a4f7063 succeeded: a/0, a/1, a/2 and 2 more"]
    assert shown(*lines, end, end)[1:] == ["01:44:28 run 9a4f7063 succeeded"]


def test_the_stack_trace_of_a_step_is_left_to_its_page() -> None:
    failure = event("STEP_FAILURE", 'Execution of step "a" failed.', step="a - ")
    assert shown(failure, "dagster.Failure: row 3", "  File x.py", event("STEP_START", "x")) == []


def test_a_problem_is_shown_with_the_lines_below_it() -> None:
    problem = line("dagster.daemon", "ERROR", "Thread died")
    quiet = sensor("Checking for new runs for sensor: chess_drops")
    found = shown(quiet, "dropped", problem, "Traceback", "", quiet, "dropped")
    assert found == ["01:44:28 Thread died", "Traceback"]
    message = f"__ASSET_JOB - {RUN} - a__b - reveal__test: not built: its terms forbid it"
    assert shown(line("dagster", "WARNING", message)) == [
        "01:44:28 run 9a4f7063 a__b - reveal__test: not built: its terms forbid it"
    ]
    follows = f"__ASSET_JOB - {RUN} - a__b - Dependencies for step a__b failed: ['a__a']."
    assert shown(line("dagster", "ERROR", follows)) == []
    expected = "No cursor for event type DagsterEventType.RUN_FAILURE, ignoring older events"
    assert shown(line("dagster.daemon.EventLogConsumerDaemon", "WARNING", expected)) == []


def test_a_sensor_says_its_news_once() -> None:
    arriving = sensor("Sensor chess_drops skipped: still arriving: 2024-01")
    nothing = sensor("Sensor chess_drops skipped: no new drop")
    assert (
        shown(arriving, arriving, nothing, nothing, arriving)
        == ["01:44:28 chess_drops: still arriving: 2024-01"] * 2
    )
    added = "Added partition keys to dynamic partitions definition 'chess_months': ['a', 'b']"
    assert shown(sensor(added)) == ["01:44:28 chess_months: new a, b"]


def test_what_is_no_line_of_dagster_is_shown_as_text_that_no_terminal_obeys() -> None:
    assert shown("a\x1b[31mb", "", "c\x07") == ["ab", "c\N{REPLACEMENT CHARACTER}"]

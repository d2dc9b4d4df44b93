"""The log of `gristmill ui`: what a person reads, and what is left out."""

from __future__ import annotations

import os

import pytest

from commands.serving.short_log import ShortLog

SENSOR = "dagster.daemon.SensorDaemon - INFO"
RUN = "6edbc744-e4a0-4470-967a-49247ae56c0c"


def line(text: str) -> str:
    return f"\x1b[32m2026-11-27 02:08:57 +0000\x1b[0m - {text}\n"


def printed(capsys: pytest.CaptureFixture[str], *lines: str) -> list[str]:
    log = ShortLog()
    os.write(log.end, "".join(lines).encode())
    log.close()
    return capsys.readouterr().out.splitlines()


def test_a_run_has_one_line_however_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    job = f"__anonymous_asset_job_macroxue_drops - {RUN} - 9"
    assert printed(
        capsys,
        line(f"dagster - DEBUG - {job} - RUN_START - Started execution"),
        line(f"dagster - INFO - {job} - 100 rows"),
        line(f"dagster - ERROR - {job} - STEP_FAILURE - Execution of step failed."),
        "Traceback (most recent call last):\n",
        line(f"dagster - ERROR - {job} - RUN_FAILURE - Execution of run failed."),
        line(f"dagster - DEBUG - packs - {RUN} - 9 - RUN_SUCCESS - Finished"),
        line(f"dagster - ERROR - packs - {RUN} - RUN_CANCELED - Canceled"),
    ) == [
        "02:08:57 run 6edbc744 of macroxue_drops failed",
        "02:08:57 run 6edbc744 of packs succeeded",
        "02:08:57 run 6edbc744 of packs was canceled",
    ]


def test_what_a_sensor_finds_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    waits = line(f"{SENSOR} - Sensor pools_drops skipped: still arriving: samples")
    nothing = line(f"{SENSOR} - Sensor pools_drops skipped: no new drop")
    added = "Added partition keys to dynamic partitions definition 'macroxue_drops': ['d6']"
    assert printed(
        capsys,
        line(f"{SENSOR} - Checking for new runs for sensor: pools_drops"),
        nothing,
        waits,
        waits,
        nothing,
        waits,
        line(f"{SENSOR} - Sensor check_states skipped: every check shows what it last found"),
        line(f"{SENSOR} - {added}"),
    ) == [
        "02:08:57 pools_drops: still arriving: samples",
        "02:08:57 pools_drops: still arriving: samples",
        f"02:08:57 {added}",
    ]


def test_warnings_of_services_are_shown_with_the_lines_that_follow(
    capsys: pytest.CaptureFixture[str],
) -> None:
    daemon = "dagster.daemon.EventLogConsumerDaemon"
    assert printed(
        capsys,
        "No module named x\n",
        line("dagster.daemon.AssetDaemon - INFO - Prefetching asset records."),
        "of the line before\n",
        line(f"{daemon} - WARNING - No cursor for event type RUN_FAILURE, ignoring older events"),
        line(f"{daemon} - ERROR - the disk is full \x1b]0;x\x07"),
        "Traceback (most recent call last):\n",
    ) == [
        "No module named x",
        "02:08:57 error: the disk is full \N{REPLACEMENT CHARACTER}]0;x\N{REPLACEMENT CHARACTER}",
        "Traceback (most recent call last):",
    ]


def test_a_line_that_comes_in_pieces_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log = ShortLog()
    os.write(log.end, b"one ")
    log.drain()
    os.write(log.end, b"\xff line\ntwo\n")
    log.drain()
    log.close()
    assert capsys.readouterr().out == "one \N{REPLACEMENT CHARACTER} line\ntwo\n"

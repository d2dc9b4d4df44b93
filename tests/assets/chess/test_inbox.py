"""Months that land in drops/chess/: which start a run, and which are refused."""

from pathlib import Path

import dagster as dg
import pytest
import zstandard

from assets.chess import FAMILY
from definitions import build_defs
from gristmill.inbox import present_drops
from resources import Lake
from tests.chess.raw.archives import GAME, zipped
from tests.sensors.ticks import Ticks

(INBOX,) = FAMILY.inboxes


def games(name: str) -> bytes:
    """A file of one game, in the form of its ending."""
    if name.endswith(".zip"):
        return zipped(("a.pgn", GAME))
    return zstandard.ZstdCompressor().compress(GAME) if name.endswith(".zst") else GAME


@pytest.fixture
def tick(instance: dg.DagsterInstance, lake: Lake) -> Ticks:
    return Ticks(INBOX, instance, lake)


@pytest.fixture
def inbox(lake: Lake) -> Path:
    lake.inbox("chess").mkdir(parents=True)
    return lake.inbox("chess")


@pytest.mark.parametrize(
    ("name", "month"),
    [
        ("lichess_elite_2024-01.zip", "2024-01"),
        ("2021-12.pgn", "2021-12"),
        ("my games 2020-06, cleaned.pgn.zst", "2020-06"),
    ],
)
def test_a_file_whose_name_carries_a_month_starts_that_months_run(tick, inbox, name, month):
    (inbox / name).write_bytes(games(name))
    assert tick().run_requests == []
    result = tick()
    (request,) = result.run_requests
    assert request.partition_key == month
    assert request.run_key.startswith(f"{month}:")
    (added,) = result.dynamic_partitions_requests
    assert added.partition_keys == [month]
    observed, landed, _ = result.asset_events
    assert landed.asset_key.to_user_string() == "chess/raw_drop"
    assert observed.partition == landed.partition == month
    assert tick().run_requests == []


def test_its_run_is_one_of_the_job():
    (sensor,) = (
        s for s in build_defs().get_repository_def().sensor_defs if s.name == "chess_drops"
    )
    assert sensor.job_name == "chess_month"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("games.pgn", "does not say which partition"),
        ("2024-01_2024-02.pgn", "does not say which partition"),
        ("2024-13.pgn", "is not a month that has ended"),
        ("2019-01.zip", "is not a month that has ended"),
        ("2999-01.zip", "is not a month that has ended"),
        ("2024-01.rar", "only files that end in .zip or .pgn or .pgn.zst"),
    ],
)
def test_other_files_are_refused_by_name(tick, lake, inbox, name, reason):
    (inbox / name).write_text("x")
    tick()
    result = tick()
    assert result.run_requests == []
    assert reason in result.skip_reason.skip_message
    (refusal,) = present_drops(inbox, lake.asked("chess"), INBOX.shape).refusals
    assert reason in refusal.reason

"""The months of chess, and the schedule that downloads them."""

import os
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import pytest

from assets.chess import chess_elite_months, chess_months
from definitions import build_defs
from gristmill.chess.raw.pgn_text import has_ended
from tests.assets.helpers import built_by


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def time_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("time_zone")
def test_a_month_is_over_when_it_is_over_in_utc_whatever_the_zone_of_the_host() -> None:
    def at(*moment: int) -> list[str]:
        return list(chess_months.get_partition_keys(datetime(*moment, tzinfo=UTC)))

    assert at(2020, 6, 30, 23, 59) == []
    assert at(2021, 1, 31, 23, 59)[-1] == "2020-12"
    months = at(2021, 2, 1, 0, 1)
    assert months[:2] == ["2020-06", "2020-07"]
    assert months[-2:] == ["2020-12", "2021-01"] and len(months) == 8
    assert all(has_ended(month, date(2021, 2, 1)) for month in months)


WHOLE = [*built_by("chess").values()][:4]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    # A schedule takes its instance by reference, which an ephemeral one has not.
    with dg.instance_for_test() as made:
        yield made


@pytest.fixture
def tick(instance: dg.DagsterInstance) -> Any:
    def evaluate(year: int, month: int, day: int) -> Any:
        context = dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=datetime(year, month, day, 4, tzinfo=UTC),
            repository_def=build_defs().get_repository_def(),
        )
        return chess_elite_months.evaluate_tick(context)

    return evaluate


def have(
    instance: dg.DagsterInstance, months: Iterable[str], assets: Iterable[Any] = WHOLE
) -> None:
    for month in months:
        for asset in assets:
            instance.report_runless_asset_event(dg.AssetMaterialization(asset.key, partition=month))


def months(data: Any) -> list[str]:
    return [request.partition_key for request in data.run_requests]


def test_at_most_three_of_the_last_twelve_months_with_the_date_in_the_run_key(tick):
    data = tick(2025, 3, 3)
    asked = months(data)
    assert len(asked) == 3
    assert all("2024-03" <= month <= "2025-02" for month in asked)
    assert [request.run_key for request in data.run_requests] == [
        f"{month}:2025-03-03" for month in asked
    ]


def test_only_months_that_are_not_whole_yet(tick, instance):
    have(instance, [f"2024-{number:02d}" for number in range(3, 13)])
    have(instance, ["2025-01"], assets=WHOLE[:2])  # its run failed half-way
    assert months(tick(2025, 3, 3)) == ["2025-01", "2025-02"]
    have(instance, ["2025-01", "2025-02"])
    data = tick(2025, 3, 3)
    assert data.run_requests == []
    assert "the last twelve months are built" in data.skip_message


def test_what_it_asks_for_is_a_partition_of_the_job(tick, instance):
    job = build_defs().get_repository_def().get_job("chess_month")
    asked = months(tick(2025, 3, 3))
    assert job.partitions_def.get_partition_keys(dynamic_partitions_store=instance) == asked

"""The months of chess that are over."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from assets.chess.partitions import chess_months
from gristmill.chess.raw.months import has_ended


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

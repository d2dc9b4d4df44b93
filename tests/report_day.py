"""The day of the reports of reasoning, which only the current day can be built for.

A run of the tests that continues after midnight has samples of the day before.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "GRISTMILL_REPORT_DAY"
"""The day on which `python -m tests.dagster_caches` works; default the current one."""


def day_of(data: Path) -> str:
    """The day of the report in a data root; the current one in UTC where there is none."""
    days = sorted(file.stem for file in (data / "reasoning/reports").glob("*-*-*.json"))
    return days[-1] if days else datetime.now(UTC).date().isoformat()


@contextmanager
def working_on(day: str) -> Iterator[None]:
    """Let a day be the current one for reports."""
    from gristmill.reasoning import builds

    class Day:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return datetime.combine(date.fromisoformat(day), time(12), zone)

    module: Any = builds
    module.datetime = Day
    try:
        yield
    finally:
        module.datetime = datetime


@contextmanager
def working_as_asked() -> Iterator[None]:
    """Let the day be the one that the variable names, if it names one."""
    day = os.environ.get(VARIABLE, "")
    if not day:
        yield
        return
    with working_on(day):
        yield

"""The CPU seconds of each test, and those that are long: `GRISTMILL_MEASURE=FILE pytest`.

What takes a CPU second or more is marked `slow`, and `make test` leaves it to `.ci/run`. With the
variable a run writes what was long into a file; `tests/test_measured.py` compares that of all
tests, `tests/measured.json`, with the marks.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

MEASURE: Final = "GRISTMILL_MEASURE"
FILE: Final = Path(__file__).with_name("measured.json")
LONG: Final = 1.0
"""CPU seconds of a test that is long: of its call, and of its own processes that have ended."""
_KEY: Final = "cpu_seconds"


def function_of(test: str) -> str:
    """The function of a test, without the case."""
    return test.partition("[")[0]


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


class _Measure:
    """It measures each call of a test, and writes what was long once all have ended."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._longest: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        begin = _cpu_seconds()
        try:
            return (yield)
        finally:
            item.user_properties.append((_KEY, _cpu_seconds() - begin))

    def pytest_runtest_logreport(self, report: Any) -> None:
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _KEY:
                test = function_of(report.nodeid)
                self._longest[test] = max(self._longest.get(test, 0.0), value)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        known = json.loads(self._file.read_text()) if self._file.exists() else {}
        known = {test: value for test, value in known.items() if test not in self._longest}
        known |= {test: round(value, 1) for test, value in self._longest.items() if value >= LONG}
        self._file.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n")


def install(config: pytest.Config) -> None:
    """Measure, if the variable asks for it."""
    if file := os.environ.get(MEASURE):
        config.pluginmanager.register(_Measure(Path(file)))

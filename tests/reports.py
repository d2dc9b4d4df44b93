"""What a worker of `pytest -n` tells of a test: one report, where nothing went wrong.

pytest-xdist sends six messages for each test: its begin, a report of its setup, call and teardown,
its end, and that the worker is ready for the next. Four of them cost half a millisecond of CPU, and
most of the 12,000 tests take less than ten times that.
"""

from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

LONG: Final = 0.1
"""Seconds of a setup or teardown that `--durations` should list."""


class Worker:
    """The plug-in of a worker: it runs each test and reports what is worth a message."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test as pytest does, without the messages of its begin and its end."""
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed or report.duration > LONG:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


class Controller:
    """The plug-in of the process that shows results: with a report, the test has ended for it."""

    def __init__(self, config: pytest.Config) -> None:
        self._hook = config.hook

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """End the line of the terminal in time, and show the share of the tests in it."""
        if report.when == "call" or not report.passed:
            self._hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


def install(config: pytest.Config) -> None:
    """Give the process its plug-in; none where pytest itself runs the tests."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker())
    elif config.getoption("numprocesses", None):
        config.pluginmanager.register(Controller(config))

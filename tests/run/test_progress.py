"""Progress counts what is done and shows it where somebody looks."""

from __future__ import annotations

import logging
import threading

from gristmill.run import progress


def test_a_log_gets_a_line_at_most_every_so_often(caplog):
    with (
        caplog.at_level(logging.INFO, "work"),
        progress.logged(logging.getLogger("work"), "hashing", every=0.0) as shown,
    ):
        shown.expect(4_000)
        shown.advance(1_500)
    assert [record.message for record in caplog.records] == [
        "hashing: 0 of 4,000",
        "hashing: 1,500 of 4,000",
    ]
    caplog.clear()
    with progress.logged(logging.getLogger("work"), "hashing", every=3600) as shown:
        for _ in range(1000):
            shown.advance(1)
    assert caplog.records == []


def test_a_terminal_shows_a_bar_and_takes_it_away(capfd):
    with progress.terminal("verify") as shown:
        shown.expect(3_000_000)
        shown.advance(3_000_000)
    captured = capfd.readouterr()
    assert captured.out == ""


def test_counts_from_many_threads_add_up():
    with progress.silent() as shown:
        threads = [
            threading.Thread(target=lambda: [shown.advance(1) for _ in range(10_000)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert shown.done == 40_000

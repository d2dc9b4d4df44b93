"""Threads that move files end with an interrupt."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from gristmill.mirror.store import MirrorError, Store
from gristmill.mirror.versions import Transfer, transferring
from gristmill.run.progress import SILENT


def test_after_an_interrupt_no_thread_goes_on_with_its_file(tmp_path: Path) -> None:
    def endless(transfer: Transfer) -> None:
        while True:
            transfer._advance(1)

    begun: list[Future[None]] = []

    def interrupted() -> None:
        with (
            SILENT.stage("pull", "bytes", 0) as stage,
            transferring(Store(str(tmp_path)), 2, stage) as (transfer, artifacts),
        ):
            begun.extend(transfer.threads.submit(endless, transfer) for _ in range(3))
            begun.append(artifacts.submit(begun[0].result))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(each.cancelled() or isinstance(each.exception(), MirrorError) for each in begun)

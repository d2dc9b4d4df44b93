"""Where the tests have their folders."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.paths import memory


def test_a_folder_in_memory_has_room_and_takes_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(may_write: bool = True, free: int = 100, flags: int = 0) -> Path | None:
        held = SimpleNamespace(f_bavail=free, f_frsize=10, f_flag=flags)
        monkeypatch.setattr(os, "access", lambda *_: may_write)
        monkeypatch.setattr(os, "statvfs", lambda _: held)
        return memory(1000)

    assert found() == Path("/dev/shm")
    assert found(may_write=False) is None
    assert found(free=99) is None
    assert found(flags=os.ST_NOEXEC) is None

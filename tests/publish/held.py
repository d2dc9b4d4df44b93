"""A lock that this process holds until somebody waits for it."""

import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from gristmill.run import locks


def release_when_awaited(held: ExitStack, patch: pytest.MonkeyPatch) -> None:
    """Let a lock go at the first pause of a waiter, who says for whom it waits at once."""
    patch.setattr(locks, "_SILENT_SECONDS", 0.0)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: held.close())
    patch.setattr(locks, "time", clock)

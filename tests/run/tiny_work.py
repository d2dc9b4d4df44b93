"""What a worker does for the tiny artifact; imports little, since every worker imports it."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from gristmill.run.parts import PartStore


@dataclass(frozen=True)
class Share:
    """One worker's share: `rows` rows of 8 bytes that depend on `seed` and `index` alone."""

    parts: PartStore
    seed: int
    index: int
    rows: int
    seconds: float = 0.0


def work(share: Share) -> tuple[str, bool]:
    """Make one part, or adopt it. Returns its name, and whether it was computed here."""
    name = f"rows-{share.index}"
    if share.parts.finished(name) is not None:
        return name, False
    time.sleep(share.seconds)
    block = hashlib.sha256(f"{share.seed}:{share.index}".encode()).digest()
    with share.parts.writing(name) as (path, summary):
        with path.open("xb", buffering=0) as file:
            for row in range(share.rows):
                file.write(block[row % 4 * 8 :][:8])
        summary["rows"] = share.rows
    return name, True


def fill(share: Share) -> int:
    """Write until the disk is full."""
    with Path(share.parts.folder, f"fill-{share.index}").open("xb", buffering=0) as file:
        for _ in range(share.rows):
            file.write(bytes(1 << 20))
    return share.index


def die(index: int) -> int:
    """Be killed, as the kernel does for want of memory."""
    if index == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return index


def sleep_and_sign(folder: str) -> str:
    """Leave a file named by this process, then go on for longer than any test waits."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)
    return folder

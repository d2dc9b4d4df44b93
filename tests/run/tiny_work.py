"""What a worker does for the tiny artifact; imports little, since every worker imports it."""

import hashlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """One part: `rows` rows of 8 bytes that depend on `seed` and `index` alone."""

    seed: int
    index: int
    rows: int
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return f"rows-{self.index}"


def make(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task; `path` must be free."""
    time.sleep(task.seconds)
    digest = hashlib.sha256(f"{task.seed}:{task.index}".encode()).digest()
    with path.open("xb", buffering=0) as file:
        for row in range(task.rows):
            file.write(digest[row % 4 * 8 :][:8])
    return {"rows": task.rows}


def fill(task: Task, path: Path) -> dict[str, Any]:
    """Write until the disk is full."""
    with path.open("xb", buffering=0) as file:
        for _ in range(task.rows):
            file.write(bytes(1 << 20))
    return {}


def die(index: int) -> int:
    """Be killed, as the kernel does where memory runs out."""
    if index == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return index


def die_as_part(index: int, path: Path) -> dict[str, Any]:
    """Write a part, but be killed in the fourth."""
    die(index)
    path.write_bytes(b"x")
    return {}


def sleep_and_sign(folder: str) -> str:
    """Leave a file named by this process, then go on for longer than any test waits."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)
    return folder

"""Runs pytest once for each line that it reads, in a child that has the libraries loaded already.

It is the first process of its own space of processes, so that a fault ends none outside, and so
that nothing that a test started outlives its run. It must import nothing of the product.
"""

import gc
import json
import os
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Final

import pytest

LIBRARIES: Final = (
    "dagster", "dagster._core.storage.event_log.sqlite", "alembic.config", "hypothesis", "numba",
    "numpy", "orjson", "pyarrow.parquet", "pydantic", "rich.console", "tiktoken", "polars", "click",
)  # fmt: skip


def run(arguments: list[str], seconds: float) -> int | None:
    """The code with which pytest ends; None where it does not end in time."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        os._exit(pytest.main(arguments))
    end = time.monotonic() + seconds
    code: int | None = None
    while code is None and time.monotonic() < end:
        time.sleep(0.02)
        done, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if done else None
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(-1, signal.SIGKILL)  # of process 1: all that it sees but itself
        while True:
            os.waitpid(-1, 0)
    return code


def main() -> None:
    """Answer each request, `[arguments, seconds]`, with a code."""
    if os.getpid() != 1:
        raise SystemExit("start it by `unshare --pid --fork`: it ends all processes that it sees")
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(*json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""What a build ran on: library versions, git commit, memory."""

from __future__ import annotations

import contextlib
import platform as machine
import resource
import sqlite3
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

_NAMED = (
    "gristmill",
    "dagster",
    "numpy",
    "numba",
    "pyarrow",
    "polars",
    "isal",
    "orjson",
    "zstandard",
    "tiktoken",
    "gigatoken",
    "openai-harmony",
    "megatron-core",
    "torch",
    "chess",
)


@cache
def libraries() -> dict[str, str]:
    """Versions of Python, SQLite and the installed libraries that can change the output."""
    versions = {"python": machine.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _NAMED:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


@cache
def platform() -> str:
    """The operating system, its version and the processor's architecture."""
    return machine.platform()


@cache
def git_sha() -> str | None:
    """Commit of the checkout this library runs from, `-dirty` where it was changed.

    None where it does not run from a checkout.
    """
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def reset_peak_memory() -> None:
    """Start a new high-water mark for `peak_memory_bytes`, where the kernel allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_bytes() -> int:
    """Largest resident set since the reset, of this process or one of its dead children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with contextlib.suppress(OSError, StopIteration, ValueError, IndexError):
        status = Path("/proc/self/status").read_text().splitlines()
        own = int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) * 1024
    return max(own, children)

"""Where the tests find the checkout and the real data."""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
REAL_DATA = Path(os.environ.get("GRISTMILL_REAL_DATA", CHECKOUT.parent / "shared" / "data"))


def open_below(folder: Path) -> int:
    """How many files and folders below a folder this process has open, removed ones included.

    Other files of the process come and go, as those of children that were used and end.
    """
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            count += folder in descriptor.readlink().parents
    return count


def memory(least: int = 0) -> Path | None:
    """A folder in memory; None where there is none, for the usual temporary folder."""
    place = Path("/dev/shm")
    if not os.access(place, os.W_OK):
        return None
    found = os.statvfs(place)
    # Tests load libraries that they compile.
    if found.f_flag & os.ST_NOEXEC or found.f_bavail * found.f_frsize < least:
        return None
    return place


def ran(
    words: Sequence[str | Path], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program in the checkout; returns its status and what it printed."""
    usual = {"cwd": CHECKOUT, "capture_output": True, "text": True}
    return subprocess.run(words, check=check, **(usual | options))

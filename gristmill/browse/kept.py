"""Files that keep what a pass over a table found, for other processes."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST: Final = 400
"""Files of the folder; the oldest are removed."""


def write(path: Path, octets: bytes) -> None:
    """Write a file as a whole; a folder that takes nothing costs one pass more."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        temporary.write_bytes(octets)
        temporary.replace(path)
        files = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        for old in files[:-_MOST]:
            old.unlink(missing_ok=True)

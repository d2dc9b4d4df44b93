"""A stamp of the kernels' own sources, so that a cached compilation is never stale.

numba's on-disk cache looks at the file of the compiled function alone: after a
change in `board.py` it would go on using the old machine code of `scan.py`,
into which the board was inlined. But the cache key also holds the values that
a function closes over; so each entry point closes over `KERNEL_STAMP`.
"""

from __future__ import annotations

import zlib
from pathlib import Path


def _stamp() -> int:
    value = 0
    here = Path(__file__).parent
    # rows.py gives the kernels their words.
    for source in (*sorted(here.glob("*.py")), here.parent / "format" / "rows.py"):
        value = zlib.crc32(source.read_bytes(), value)
    return value


KERNEL_STAMP = _stamp()

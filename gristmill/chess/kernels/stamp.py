"""A stamp of the sources of the compiled functions, so that their cache is never out of date.

numba's cache on disk looks only at the file of the compiled function. After a change
in `board.py` it would still use the machine code of `scan.py` with the old board
inlined. Its cache key includes the values that a function closes over, so each entry
point closes over `KERNEL_STAMP`.
"""

from __future__ import annotations

import zlib
from pathlib import Path


def _stamp() -> int:
    value = 0
    here = Path(__file__).parent
    # The compiled functions freeze constants of rows.py.
    for source in (*sorted(here.glob("*.py")), here.parent / "format" / "rows.py"):
        value = zlib.crc32(source.read_bytes(), value)
    return value


KERNEL_STAMP = _stamp()

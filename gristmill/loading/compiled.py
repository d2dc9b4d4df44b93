"""When a process orders its samples by machine code: once it has ordered so many that it pays."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Final

PAYS: Final = 1 << 21
"""Numbers that a process orders in NumPy first: what the kernels save then is what numba's import,
half a second, costs."""

_ordered = 0


def kernels(ordered: int = 0) -> ModuleType | None:
    """The kernels, which give what NumPy gives; None where they do not pay yet or numba is off."""
    global _ordered
    _ordered += ordered
    if _ordered < PAYS or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return None
    from gristmill.loading import kernels as found

    return found

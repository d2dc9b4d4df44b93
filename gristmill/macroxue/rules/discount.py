"""Discounted returns of whole runs, compiled; what they are for stands in `values.py`.

Importing this module loads numba: import it late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit


# Without fastmath no operation is fused or reordered, so every bit is settled.
@njit("float64[::1](float32[::1], int64[::1], float64)", nogil=True, cache=True, fastmath=False)
def discounted(rewards: Any, lengths: Any, gamma: float) -> npt.NDArray[np.float64]:
    """Returns float64 [N] of runs of these lengths, one after another, rewards float32 [N].

    G[t] = rewards[t] + gamma * G[t + 1], with G behind a run's end = 0.
    """
    returns = np.empty(len(rewards), np.float64)
    stop = len(rewards)
    for run in range(len(lengths) - 1, -1, -1):
        start = stop - lengths[run]
        later = 0.0
        for row in range(stop - 1, start - 1, -1):
            later = np.float64(rewards[row]) + gamma * later
            returns[row] = later
        stop = start
    return returns

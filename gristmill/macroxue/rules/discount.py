"""Discounted returns; importing this loads numba. Source: docs/formats/macroxue.md#returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.run.kernels import kernel


# Without fastmath no operation is fused or reordered, so every machine gives the same bits.
@kernel("float64[::1](float32[::1], int64[::1], float64)", nogil=True, fastmath=False)
def discounted(rewards: Any, lengths: Any, gamma: float) -> npt.NDArray[np.float64]:
    """Returns G[t] = rewards[t] + gamma * G[t + 1] as float64 [N]; G behind a run is 0.

    rewards: float32 [N], runs one after another.
    lengths: int64 [R], the number of rows of each run, with the sum N.
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

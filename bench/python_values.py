"""Rewards and returns of steps of 2048 by a loop in Python: what values are measured against."""

from __future__ import annotations

import numpy as np


def slide(line: list[int]) -> int:
    """Points of one line, wall at index 0."""
    tiles = [rank for rank in line if rank]
    points = at = 0
    while at < len(tiles):
        if at + 1 < len(tiles) and tiles[at] == tiles[at + 1]:
            points += 2 << tiles[at]
            at += 1
        at += 1
    return points


LINES = [
    [[4 * p + k for p in range(4)] for k in range(4)],
    [[4 * (3 - p) + k for p in range(4)] for k in range(4)],
    [[4 * k + p for p in range(4)] for k in range(4)],
    [[4 * k + 3 - p for p in range(4)] for k in range(4)],
]


def python_values(rows: np.ndarray) -> list[tuple[float, float]]:
    """Reward and return of every step, by a loop in Python."""
    out = []
    later = 0.0
    run = -1
    for row in reversed(rows.tolist()):
        run_id, board, mask, move = row[0], row[2], row[4], row[5]
        ranks = [16 if mask >> cell & 1 else board >> (60 - 4 * cell) & 15 for cell in range(16)]
        reward = sum(slide([ranks[cell] for cell in line]) for line in LINES[move])
        later = reward + 0.997 * later if run_id == run else float(reward)
        run = run_id
        out.append((reward, later))
    return out[::-1]

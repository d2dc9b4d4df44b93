"""The distribution of document lengths of a shard, as counts and as a drawing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.svg import BAR, GROUND, RULE, SOFT, WIDEST
from gristmill.synth.format import indexed

_BARS: Final = 32
_WIDTH, _HEIGHT, _LEFT, _BASE = WIDEST, 200, 60, 160
_TALLEST: Final = 130

Lengths = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The lengths that occur, ascending, and how many documents have each; both int64 [L]."""


def document_lengths(root: Path, number: str) -> Lengths:
    """Return the lengths in tokens over both splits of a shard.

    Documents are read in batches. Both arrays are empty if there are none.
    """
    lengths: Lengths = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    for split in ("train", "valid"):
        prefix = root / split / f"shard_{number}_tokens"
        if prefix.with_name(prefix.name + ".idx").exists():
            for batch in indexed.read(prefix).length_batches():
                lengths = _merged(lengths, np.unique(batch, return_counts=True))
    return lengths


def _merged(one: Lengths, other: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> Lengths:
    lengths, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    numbers = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(numbers, places, np.concatenate([one[1], other[1]]))
    return lengths, numbers


def _quantile(lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], q: float) -> float:
    """Return the quantile q of the lengths of all documents, as np.quantile does."""
    upto = np.cumsum(numbers)
    rank = q * (int(upto[-1]) - 1)
    below, above = lengths[np.searchsorted(upto, [math.floor(rank), math.ceil(rank)], "right")]
    return float(below + (above - below) * (rank - math.floor(rank)))


def histogram(lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> str:
    """Return document lengths as bars in SVG. The last bar has all beyond the 99.5th percentile.

    lengths: the lengths that occur, int64 [L], ascending, not empty.
    numbers: how many documents have each, int64 [L].
    """
    least, middle = float(lengths[0]), _quantile(lengths, numbers, 0.5)
    top = max(_quantile(lengths, numbers, 0.995), least + 1)
    edges = np.linspace(least, top, _BARS + 1)
    heights, _ = np.histogram(np.minimum(lengths, top), edges, weights=numbers)
    step = (_WIDTH - _LEFT - 20) / _BARS
    tallest = max(int(heights.max()), 1)
    bars = "".join(
        f'<rect x="{_LEFT + i * step:.1f}" y="{_BASE - _TALLEST * n / tallest:.1f}" '
        f'width="{step - 1:.1f}" height="{_TALLEST * n / tallest:.1f}"/>'
        for i, n in enumerate(heights.tolist())
        if n
    )
    ticks = "".join(
        f'<text x="{_LEFT + i * step:.0f}" y="{_BASE + 16}" text-anchor="middle">'
        f"{edges[i]:,.0f}</text>"
        for i in range(0, _BARS + 1, 8)
    )
    median = _LEFT + (middle - edges[0]) / (edges[-1] - edges[0]) * step * _BARS
    return _svg(
        f'<g fill="{BAR}">{bars}</g>'
        f'<path d="M{_LEFT} {_BASE}H{_WIDTH - 20}" stroke="{RULE}"/>'
        f'<path d="M{median:.1f} 24V{_BASE}" stroke="#fff" stroke-dasharray="4 3"/>'
        f'<text x="{median + 5:.1f}" y="28">median {middle:,.0f}</text>'
        f'<text x="{_LEFT - 8}" y="{_BASE - _TALLEST + 4}" text-anchor="end">{tallest:,}</text>'
        f'<text x="{_LEFT - 8}" y="{_BASE + 3}" text-anchor="end">0</text>{ticks}'
        f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_BASE + 34}" text-anchor="middle">'
        f"tokens in a document ({int(numbers.sum()):,} documents)</text>"
    )


def _svg(drawing: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"<style>text{{font:11px sans-serif;fill:{SOFT}}}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>{drawing}</svg>'
    )

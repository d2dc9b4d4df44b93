"""The distribution of the lengths of examples, as counts and as a drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from gristmill.reasoning.format.index import rows
from gristmill.svg import histogram_svg, small_histogram

_BARS: Final = 16
_WIDEST: Final = 0.99
"""Part of the examples that the bars before the last one show at least."""


def token_lengths(path: Path) -> Counter[int]:
    """How many examples have each number of tokens, without the end-of-text token.

    Memory does not grow with the examples, but with the lengths that occur.
    """
    return Counter(row.num_tokens for row in rows(path))


def median(lengths: Mapping[int, int]) -> int:
    """The length that half of the examples have at most; 0 where there are none.

    lengths: examples by length.
    """
    return _quantile(lengths, 0.5)


def histogram(lengths: Mapping[int, int]) -> str:
    """Examples by length as bars in SVG; the last bar has all that are longer.

    lengths: examples by length.
    """
    return histogram_svg("Tokens of an example", _bars(lengths), f"median {median(lengths):,}")


def small_histogram_of(lengths: Mapping[int, int]) -> str:
    """The same bars for the overview of an asset."""
    return small_histogram("Tokens of an example", _bars(lengths), f"median {median(lengths):,}")


def _bars(lengths: Mapping[int, int]) -> list[tuple[str, int]]:
    step = _nice(max(1, -(-_quantile(lengths, _WIDEST) // (_BARS - 1))))
    bars = Counter[int]()
    for length, number in lengths.items():
        bars[min(length // step, _BARS - 1)] += number
    last = max(bars, default=0)
    return [
        (f"{bar * step:,}{'+' if bar == _BARS - 1 else ''}", bars[bar]) for bar in range(last + 1)
    ]


def _quantile(lengths: Mapping[int, int], share: float) -> int:
    wanted, seen = share * sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= wanted:
            return length
    return 0


def _nice(width: int) -> int:
    """The least of 1, 2, 5, 10, 20, 50 .. that is not below `width`."""
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if factor * scale >= width:
                return factor * scale
        scale *= 10


def shares(counts: Iterable[tuple[str, int]], total: int) -> list[tuple[str, str, str]]:
    """Rows of a table: name, number and percent of each count that is not 0.

    counts: name and number.
    total: what 100 percent is.
    """
    return [
        (name, f"{number:,}", f"{100 * number / total:.1f} %" if total else "–")
        for name, number in counts
        if number
    ]

"""Numbers of a dataset for its pages, and the seeded choice of the examples that they draw."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.puzzles.format import names
from gristmill.puzzles.read.rows import Dataset, SetArrays
from gristmill.reading.facts import array_fact, counted

_BARS: Final = 12
_ROWS: Final = 1 << 20
"""Origins that are held at once."""


@dataclass(frozen=True)
class SetNumbers:
    """The numbers of one set.

    split, set_name: which set. examples, puzzles, groups: how many it has.
    augmented: examples that are augmentations; None for a dataset without a trace.
    group_sizes: groups by their number of puzzles. puzzle_sizes: puzzles by their examples.
    """

    split: str
    set_name: str
    examples: int
    puzzles: int
    groups: int
    augmented: int | None
    group_sizes: Mapping[int, int]
    puzzle_sizes: Mapping[int, int]

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of a table: split, set, examples, puzzles, groups, share of augmentations."""
        counts = (f"{count:,}" for count in (self.examples, self.puzzles, self.groups))
        return self.split, self.set_name, *counts, percent(self.augmented, self.examples)


def set_numbers(split: str, set_name: str, arrays: SetArrays) -> SetNumbers:
    """Count what a set has. Reads the index arrays and the origins, no tokens."""
    return SetNumbers(
        split=split,
        set_name=set_name,
        examples=len(arrays.inputs),
        puzzles=len(arrays.puzzle_identifiers),
        groups=max(0, len(arrays.group_indices) - 1),
        augmented=None if arrays.origins is None else _augmented(arrays.origins),
        group_sizes=_sizes(arrays.group_indices),
        puzzle_sizes=_sizes(arrays.puzzle_indices),
    )


def all_numbers(data: Dataset) -> list[SetNumbers]:
    """The numbers of all sets, the training split first."""
    return [set_numbers(*place, data.arrays(*place)) for place in data.sets()]


def facts(folder: Path) -> Iterator[str]:
    """Yield what is in a dataset, a line each: its sets, arrays, metadata and names.

    folder: of the dataset.

    Raises BadInput where a file cannot be read.
    """
    data = Dataset(folder)
    for each in all_numbers(data):
        place, arrays = (each.split, each.set_name), data.arrays(each.split, each.set_name)
        groups, puzzles = counted(each.groups, "group"), counted(each.puzzles, "puzzle")
        yield f"{'/'.join(place)}: {groups}, {puzzles}, {counted(each.examples, 'example')}"
        for field in names.FIELDS:
            yield array_fact(names.array(*place, field), getattr(arrays, field))
    for split in names.SPLITS:
        described = vars(data.metadata(split)).items()
        yield f"{names.metadata(split)}: {', '.join(f'{key} {value}' for key, value in described)}"
    yield f"{names.IDENTIFIERS}: {counted(len(data.identifiers), 'name')}"


def percent(part: int | None, whole: int) -> str:
    """A share as `12.5 %`; a dash where it is not known."""
    return "–" if part is None or not whole else f"{100 * part / whole:.1f} %"


def bars(sizes: Mapping[int, int]) -> list[tuple[str, int]]:
    """Counts by size as at most twelve bars: label and count of each.

    Sizes that are too many for bars of their own share bars of equal width.
    """
    if len(sizes) <= _BARS:
        return [(f"{size:,}", sizes[size]) for size in sorted(sizes)]
    least, most = min(sizes), max(sizes)
    width = -(-(most - least + 1) // _BARS)
    grouped = Counter[int]()
    for size, count in sizes.items():
        grouped[(size - least) // width] += count
    return [
        (f"{least + width * bar:,}–", grouped[bar]) for bar in range((most - least) // width + 1)
    ]


def drawn(seed: str, count: int, total: int) -> list[int]:
    """Numbers that a seed draws, the same at every call, in ascending order.

    seed: any text. count: how many, at most. total: they are 0 to total - 1.
    """
    if count >= total:
        return list(range(total))
    chosen: set[int] = set()
    draw = 0
    while len(chosen) < count:
        digest = hashlib.sha256(f"{seed}:{draw}".encode()).digest()
        chosen.add(int.from_bytes(digest[:8], "little") % total)
        draw += 1
    return sorted(chosen)


def first_rows(arrays: SetArrays, group: int, most: int) -> list[int]:
    """The first example of each of the first puzzles of a group."""
    first, end = (int(value) for value in arrays.group_indices[group : group + 2])
    return [int(row) for row in arrays.puzzle_indices[first : min(end, first + most)]]


def token_counts(rows: npt.NDArray[np.integer]) -> Counter[int]:
    """How often each token occurs."""
    values, counts = np.unique(rows, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def token_bars(counts: Mapping[int, int], names: Sequence[str] = ()) -> list[tuple[str, int]]:
    """Counts of tokens as bars: the most frequent ones in the order of their numbers."""
    most = sorted(counts, key=lambda token: (-counts[token], token))[:_BARS]
    return [
        (names[token] if 0 <= token < len(names) else str(token), counts[token])
        for token in sorted(most)
    ]


def _sizes(indices: npt.NDArray[np.integer]) -> Counter[int]:
    offsets = indices.astype(np.int64)
    return token_counts(offsets[1:] - offsets[:-1])


def _augmented(origins: npt.NDArray[np.integer]) -> int:
    starts = range(0, len(origins), _ROWS)
    return sum(int(np.count_nonzero(origins[start : start + _ROWS, 2])) for start in starts)


def facts_of(_: str, folder: Path) -> Iterator[str]:
    """Yield what is in a dataset of any kind, a line each."""
    return facts(folder)

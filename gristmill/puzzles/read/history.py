"""Puzzles with their augmentations as a history names them, and what a loader had of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from gristmill.history.rows import Kept
from gristmill.layout import DROPS
from gristmill.loading.past import Past
from gristmill.loading.source import Grouped, Source
from gristmill.provenance import Record
from gristmill.puzzles.read.rows import Dataset

_BLANK: Final = "<blank>"
_LINES: Final = ("sudoku", "maze", "grid")
"""Kinds whose source row is a line."""


def rows(folder: Path, _: Record) -> Iterator[Kept]:
    """A row for each group, by the name of its first puzzle: identifiers get other numbers."""
    data, before = Dataset(folder), dict[str, int]()
    files = [f"{DROPS}/puzzles/{each.path}" for each in data.sources.files]
    for split, set_name in data.sets():
        arrays, first = data.arrays(split, set_name), before.get(split, 0)
        for puzzle, after in pairwise(map(int, arrays.group_indices)):
            begin, end = (int(arrays.puzzle_indices[each]) for each in (puzzle, after))
            name = data.identifiers[int(arrays.puzzle_identifiers[puzzle])]
            tokens = np.stack([arrays.inputs[begin:end], arrays.labels[begin:end]])
            where, place = "", -1
            if arrays.origins is not None:
                file, place, _draw = arrays.origins[begin].tolist()
                where = files[file] if file >= 0 else ""
                place = place if data.kind in _LINES else -1
            own, at = "" if name == _BLANK else name, first + begin
            yield Kept(split, own, tokens.tobytes(), where, place, -1, at, end - begin)
        before[split] = first + len(arrays.inputs)


def past(kept: Past, **options: Any) -> Source:
    """The examples of a dataset as `examples.opened` gives them."""
    own, split = kept.of(), f"{kept.identity.split}/"
    files = [each.path for each in kept.versions[0].record.outputs]
    own.shards = sum(each.startswith(split) and each.endswith("__inputs.npy") for each in files)
    return Grouped(own, np.append(own.firsts, own.cuts[-1:])) if options.get("groups") else own

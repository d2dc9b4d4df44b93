"""What augmentation leaves in place. Source: docs/formats/puzzles.md#augmentation-law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.laws import Few, or_unreadable
from gristmill.puzzles.format import names
from gristmill.puzzles.read.rows import Dataset, Integers, Rows

Positions = Sequence[int] | npt.NDArray[np.bool_] | npt.NDArray[np.integer]


def augmentation_law(
    folder: Path, fixed: Positions = (), separators: Sequence[int] = ()
) -> Iterator[Violation]:
    """Yields the rows in which an augmentation changed more than the puzzle.

    folder: of the dataset, published or staged.
    fixed: the control fields: their positions in a row, or a mask bool [seq_len]. A row has there,
        in inputs and in labels, what the first row of its group has. Default none.
    separators: tokens that keep their positions in inputs. Default none.

    Padding keeps its positions in inputs, and the labels without loss keep theirs. At most 20 rows
    of a set are named, and the rest is counted. Raises ValueError for positions outside of a row.
    """
    return or_unreadable(_violations(Dataset(folder), fixed, separators), str(folder))


def _violations(
    dataset: Dataset, fixed: Positions, separators: Sequence[int]
) -> Iterator[Violation]:
    for split, name in dataset.sets():
        found = _Set(dataset, split, name, np.asarray(fixed), separators).violations()
        few = Few(names.array(split, name, "inputs"), "{more:,} more rows like these")
        yield from few.of(found)


class _Set:
    """The rows of one set, compared with the first rows of their groups."""

    def __init__(
        self,
        dataset: Dataset,
        split: str,
        name: str,
        fixed: npt.NDArray[np.generic],
        separators: Sequence[int],
    ) -> None:
        self._dataset, self._key = dataset, (split, name)
        self._metadata = dataset.metadata(split)
        self._separators = separators
        length = self._metadata.seq_len
        is_mask = fixed.dtype == np.bool_
        if is_mask and fixed.shape != (length,):
            raise ValueError(f"a mask of the shape {fixed.shape} for rows of {length} tokens")
        self._fixed = np.flatnonzero(fixed) if is_mask else fixed.astype(np.int64)
        if len(self._fixed) and not 0 <= self._fixed.min() <= self._fixed.max() < length:
            raise ValueError(f"positions outside of a row of {length} tokens")

    def violations(self) -> Iterator[Violation]:
        """One for each row that differs."""
        arrays = self._dataset.arrays(*self._key)
        starts = arrays.puzzle_indices[arrays.group_indices[:-1]].astype(np.int64)
        carried: tuple[Integers, Integers] | None = None
        for rows in self._dataset.rows(*self._key):
            numbers = rows.first + np.arange(len(rows.inputs))
            first = starts[np.searchsorted(starts, numbers, "right") - 1] - rows.first
            pairs = []
            for place, tokens in enumerate((rows.inputs, rows.labels)):
                of_group = tokens[np.maximum(first, 0)]
                if carried is not None:
                    of_group[first < 0] = carried[place]
                pairs.append((tokens, of_group))
            carried = pairs[0][1][-1], pairs[1][1][-1]
            yield from self._different(rows, *pairs)

    def _different(
        self, rows: Rows, inputs: tuple[Integers, Integers], labels: tuple[Integers, Integers]
    ) -> Iterator[Violation]:
        ignored = self._metadata.ignore_label_id
        rules = {
            "padding": _moved(*inputs, [self._metadata.pad_id]),
            "a separator": _moved(*inputs, self._separators),
            "a label without loss": _moved(*labels, [] if ignored is None else [ignored]),
        }
        for noun, (tokens, of_group) in (("inputs", inputs), ("labels", labels)):
            changed = tokens[:, self._fixed] != of_group[:, self._fixed]
            rules[f"a control field of the {noun}"] = changed.any(axis=1)
        wrong = np.flatnonzero(np.any(list(rules.values()), axis=0))
        for row in wrong.tolist():
            what = ", ".join(noun for noun, rows_of_it in rules.items() if rows_of_it[row])
            where = f"{names.array(*self._key, 'inputs')} row {rows.first + row}"
            yield Violation("augmentation", where, f"{what} differs from the group's first row")


def _moved(tokens: Integers, of_group: Integers, kept: Sequence[int]) -> npt.NDArray[np.bool_]:
    """The rows in which one of the tokens `kept` has other positions."""
    moved = np.zeros(len(tokens), np.bool_)
    for token in kept:
        moved |= ((tokens == token) != (of_group == token)).any(axis=1)
    return moved

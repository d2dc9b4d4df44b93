"""The examples of a split by number, for a plain data loader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gristmill.contract import Trace
from gristmill.families import Request
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, Source, identity_of, only
from gristmill.puzzles.format import names
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata
from gristmill.puzzles.read.dataset import batch_of, owners_of
from gristmill.puzzles.read.rows import MappedSplit, open_split
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import Opening
from gristmill.reading.reader import Reader, located
from gristmill.reading.sample_numbers import number_of, numbers_of
from gristmill.reading.torch_batch import ColumnBatch, Row

_ASSET: Final = "puzzles"
"""All kinds have the same arrays; data versions tell them apart."""

__all__ = ["PuzzleExamples", "StaleDataset"]


class PuzzleExamples(Reader[MappedSplit]):
    """Random access to the examples of one split: all sets in their order, row by row.

    folder: the folder with `train` and `test`.
    split: "train" (default) or "test".
    verify: how much is compared with the record: "none", "sizes" (the default) or "hash".

        DataLoader(PuzzleExamples(folder), batch_size=768, shuffle=True, num_workers=2)

    An example has `inputs` and `labels` [seq_len] and `puzzle_identifiers`, a number, as int32
    tensors; those of a data loader are stacked. Labels equal to `ignore_label_id` are -100. Every
    example counts once: `PuzzleDataset` takes one puzzle of each group at a time instead.

    Token arrays are mapped into memory. A folder without a record, as the original builders make
    it, can be read too.

    Raises BadInput where a file is missing or damaged, StaleDataset where another version is
    published than was opened, ValueError for another split or level.
    """

    def __init__(
        self, folder: Path | str, split: str = "train", *, verify: Verify | bool = "sizes"
    ) -> None:
        if split not in names.SPLITS:
            raise ValueError(f"split {split!r}: must be one of {', '.join(names.SPLITS)}")
        self.folder, self.split = located(folder), split
        self.start(verify)
        self._ends = np.cumsum([made.examples for made in self.held.sets], dtype=np.int64)

    def open_files(self, opening: Opening) -> MappedSplit:
        """Map the arrays of the split."""
        return open_split(opening.folder(self.folder), self.split, opening.first)

    @property
    def metadata(self) -> PuzzleDatasetMetadata:
        """The metadata of the split."""
        return self.held.metadata

    def __len__(self) -> int:
        """Number of examples."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, number: int) -> Row:
        """One example as tensors; a negative number counts from the end. Raises as `batch`."""
        return self.__getitems__([number_of(number, len(self), "example")])[0]

    def __getitems__(self, numbers: Sequence[int]) -> ColumnBatch:
        """Examples by number as one batch; a data loader of torch calls it.

        Negative numbers count from the end. Raises as `batch`.
        """
        import torch

        columns = self._columns(numbers_of(numbers, len(self), "example"))
        return ColumnBatch({name: torch.from_numpy(column) for name, column in columns.items()})

    def batch(self, numbers: Sequence[int] | npt.NDArray[np.integer]) -> dict[str, Any]:
        """Examples by number, in any order, as new int32 arrays.

        numbers: [N], from 0 up to the number of examples.

        Returns inputs and labels [N, seq_len] and puzzle_identifiers [N]. Raises IndexError for a
        number outside, TypeError for anything but integers.
        """
        return self._columns(numbers_of(numbers, len(self), "example", from_end=False))

    def source(self, *, groups: bool = False) -> Source:
        """The examples by number, for `gristmill.loading`; columns as `batch`.

        groups: one example of each group an epoch, drawn in each, as `PuzzleDataset` has one
            puzzle of each; default every example once.

        Raises GristmillError for a folder without a record.
        """
        from gristmill.loading.source import Grouped

        own = ExampleSource(self)
        return Grouped(own, own.group_bounds) if groups else own

    def _columns(self, wanted: npt.NDArray[np.int64]) -> dict[str, Any]:
        set_of = np.searchsorted(self._ends, wanted, "right")
        places, found = [], []
        for number, made in enumerate(self.held.sets):
            place = np.flatnonzero(set_of == number)
            rows = wanted[place] - (self._ends[number] - made.examples)
            places.append(place)
            found.append(batch_of(made, self.metadata, rows, owners_of(made, rows), len(rows)))
        if len(found) == 1:
            return found[0]
        back = np.argsort(np.concatenate(places))
        return {name: np.concatenate([each[name] for each in found])[back] for name in found[0]}


class ExampleSource:
    """Examples by number over all sets of a split, one shard a set."""

    def __init__(self, data: PuzzleExamples) -> None:
        self._data = data
        self.identity = identity_of(_ASSET, data.generations, data.split)
        ends = np.cumsum([made.examples for made in data.held.sets])
        self.cuts: Numbers = np.append(0, ends).astype(np.int64)

    @property
    def group_bounds(self) -> Numbers:
        """The first example of each group of each set, and the number of all."""
        firsts = [
            first + made.puzzle_indices[made.group_indices[:-1]].astype(np.int64)
            for first, made in zip(self.cuts.tolist(), self._data.held.sets, strict=False)
        ]
        return np.concatenate([*firsts, self.cuts[-1:]])

    def read(self, numbers: Numbers) -> Columns:
        """Inputs, labels and puzzle_identifiers, int32."""
        return self._data.batch(numbers)

    def shown(self, number: int) -> Iterator[Request]:
        """The example."""
        folder, row, name = self._place(number)
        yield Request(folder, str(row), {"split": self._data.split, "set": name})

    def origin(self, number: int) -> Iterator[Trace]:
        """The raw row of an example, and what was done with it."""
        folder, row, name = self._place(number)
        from gristmill.puzzles.read.trace import example_origins

        return iter(example_origins(folder, row, self._data.split, name))

    def _place(self, number: int) -> tuple[Path, int, str]:
        """The folder of an example, its number in its set, and the name of the set."""
        place = int(np.searchsorted(self.cuts, number, "right")) - 1
        row, name = number - int(self.cuts[place]), self._data.held.sets[place].name
        return self._data.generations[0].folder, row, name


def opened(
    folders: Sequence[Path], *, split: Literal["train", "test"] = "train", groups: bool = False
) -> Source:
    """A dataset as a source; arguments as `PuzzleExamples` and its `source`."""
    return PuzzleExamples(only(folders), split).source(groups=groups)

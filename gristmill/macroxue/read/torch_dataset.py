"""A StepDataset as a torch Dataset; importing this module loads torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from gristmill.lazy_exports import naming_the_extra
from gristmill.macroxue.read.stream import Indices, RowSet
from gristmill.reading.sample_numbers import is_one, number_of, numbers_of
from gristmill.reading.torch_batch import ColumnBatch

with naming_the_extra():
    import torch
    from torch.utils.data import Dataset


class Steps(Protocol):
    """What this module needs of a StepDataset."""

    def __len__(self) -> int:
        """Number of rows."""

    def batch(self, indices: Indices) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of rows by name, as `StepDataset.batch`."""


class TorchSteps(Dataset[dict[str, torch.Tensor]]):
    """Steps by number: one step for a number, a batch for a list of numbers.

    rows: the rows of a split; default None, all rows.

    A plain data loader reads each batch at once:

        DataLoader(data, batch_size=4096, shuffle=True, num_workers=2)

    The tensors are the columns of `StepDataset.batch`, with two differences: `ranks` is called
    `tokens`, int64 [N, 16] of 0..16; and move_dir, valuation_type, max_rank, run_id and
    step_index are int64, because torch has little arithmetic on unsigned integers. It can be
    pickled; each worker maps the files itself.

    Negative numbers count from the end. Raises IndexError for a number outside the rows, TypeError
    for anything but integers.
    """

    def __init__(self, steps: Steps, rows: RowSet | None = None) -> None:
        self.steps = steps
        self.row_set = rows

    def __len__(self) -> int:
        return len(self.steps) if self.row_set is None else len(self.row_set)

    def __getitem__(self, numbers: int | Sequence[int]) -> dict[str, torch.Tensor]:
        if not is_one(numbers):
            return self._columns(numbers_of(numbers, len(self), "row"))
        batch = self._columns(np.array([number_of(numbers, len(self), "row")]))
        return {name: column[0] for name, column in batch.items()}

    def __getitems__(self, numbers: Sequence[int]) -> ColumnBatch:
        """Steps by number as one batch; a data loader of torch calls it."""
        return ColumnBatch(self._columns(numbers_of(numbers, len(self), "row")))

    def _columns(self, listed: Indices) -> dict[str, torch.Tensor]:
        indices = listed if self.row_set is None else self.row_set.rows(listed)
        batch = {
            name: torch.from_numpy(column.astype(np.int64) if name in _WIDENED else column)
            for name, column in self.steps.batch(indices).items()
        }
        batch["tokens"] = batch.pop("ranks")
        return batch


_WIDENED = ("ranks", "move_dir", "valuation_type", "max_rank", "run_id", "step_index")

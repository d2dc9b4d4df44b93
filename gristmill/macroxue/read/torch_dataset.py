"""A StepDataset, or the rows of a split, as a torch Dataset.

Importing this module loads torch, so only `StepDataset.as_torch` imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import Dataset

from gristmill.macroxue.read.gather import Indices
from gristmill.macroxue.read.splits import RowSet


class Steps(Protocol):
    """What this module needs of a StepDataset."""

    def __len__(self) -> int:
        """Number of rows."""

    def batch(self, indices: Indices) -> dict[str, np.ndarray[Any, Any]]:
        """The columns of rows by name, as `StepDataset.batch`."""


class TorchSteps(Dataset[dict[str, torch.Tensor]]):
    """Steps by number: one step for a number, a batch for a list of numbers.

    steps: a StepDataset.
    rows: the rows of a split; default None, all rows.

    Lists are much faster than single numbers, so use a batch sampler:

        DataLoader(data, batch_size=None, num_workers=4,
                   sampler=BatchSampler(RandomSampler(data), 4096, drop_last=True))

    The tensors are the columns of `StepDataset.batch`, with two differences: `ranks` is called
    `tokens`, int64 [N, 16] of 0..16; and move_dir, valuation_type, max_rank, run_id and
    step_index are int64, because torch has little arithmetic on unsigned integers. It can be
    pickled; each worker maps the files itself.

    Raises IndexError for a number outside the rows.
    """

    def __init__(self, steps: Steps, rows: RowSet | None = None) -> None:
        self.steps = steps
        self.row_set = rows

    def __len__(self) -> int:
        return len(self.steps) if self.row_set is None else len(self.row_set)

    def __getitem__(self, numbers: int | Sequence[int]) -> dict[str, torch.Tensor]:
        one = isinstance(numbers, (int, np.integer))
        listed = np.atleast_1d(np.asarray(numbers, np.int64))
        indices = listed if self.row_set is None else self.row_set.rows(listed)
        batch = {name: _tensor(name, column) for name, column in self.steps.batch(indices).items()}
        batch["tokens"] = batch.pop("ranks")
        return {name: column[0] for name, column in batch.items()} if one else batch


_WIDENED = ("ranks", "move_dir", "valuation_type", "max_rank", "run_id", "step_index")


def _tensor(name: str, column: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(column.astype(np.int64) if name in _WIDENED else column)

"""A StepDataset, or the rows of a split, as a torch Dataset.

Importing this module loads torch: `StepDataset.as_torch` does, late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from gristmill.macroxue.read.dataset import StepDataset
from gristmill.macroxue.read.splits import RowSet


class TorchSteps(Dataset[dict[str, torch.Tensor]]):
    """Steps by number: one for a number, a whole batch for a list of numbers.

    Batches are what it is fast at; hand it lists by a batch sampler:

        DataLoader(data, batch_size=None, num_workers=4,
                   sampler=BatchSampler(RandomSampler(data), 4096, drop_last=True))

    Tensors are the columns of `StepDataset.batch` with tokens int64 [N, 16]
    (ranks 0..16) in place of ranks, move_dir and valuation_type as int64, run_id
    and step_index as int64 (torch has little arithmetic on uint32). Pickles; each
    worker maps the files itself.
    """

    def __init__(self, steps: StepDataset, rows: RowSet | None = None) -> None:
        self.steps = steps
        self.row_set = rows

    def __len__(self) -> int:
        return len(self.steps) if self.row_set is None else len(self.row_set)

    def __getitem__(self, numbers: int | Sequence[int]) -> dict[str, torch.Tensor]:
        one = isinstance(numbers, (int, np.integer))
        wanted = np.atleast_1d(np.asarray(numbers, np.int64))
        indices = wanted if self.row_set is None else self.row_set.rows(wanted)
        batch = {name: _tensor(name, column) for name, column in self.steps.batch(indices).items()}
        batch["tokens"] = batch.pop("ranks")
        return {name: column[0] for name, column in batch.items()} if one else batch


_WIDENED = ("ranks", "move_dir", "valuation_type", "max_rank", "run_id", "step_index")


def _tensor(name: str, column: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(column.astype(np.int64) if name in _WIDENED else column)

"""The form of a PuzzleDataset where torch is installed: tensors, and at most one worker.

Importing this module loads torch, so only `PuzzleDataset` imports it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from gristmill.contract import GristmillError

__all__ = ["IterableDataset", "TorchForm"]


class TorchForm:
    """Tensors, and numbers that the worker of a data loader shares.

    So a loader whose worker ends after each pass reads the next pass with its next worker.
    """

    def new_numbers(self, count: int) -> Any:
        """Integers that start at 0, in shared memory."""
        numbers = torch.zeros(count, dtype=torch.int64)
        return numbers.share_memory_()

    def given(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch as tensors."""
        return {name: torch.from_numpy(column) for name, column in batch.items()}

    def is_worker(self) -> bool:
        """Whether this is the worker of a data loader. Raises GristmillError for one of several."""
        worker = get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise GristmillError(
                f"{worker.num_workers} workers would each give all batches of the puzzles: use a"
                " data loader with num_workers=1 or 0"
            )
        return worker is not None

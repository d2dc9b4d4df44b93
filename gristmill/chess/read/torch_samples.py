"""A GameSpliceDataset as a torch Dataset.

Importing this module loads torch: only `GameSpliceDataset.as_torch` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from gristmill.lazy_exports import naming_the_extra
from gristmill.reading.torch_batch import ColumnBatch

with naming_the_extra():
    import torch
    from torch.utils.data import Dataset


class Samples(Protocol):
    """What this module needs of a GameSpliceDataset."""

    def __len__(self) -> int: ...

    def batch(
        self, indices: Sequence[int], vocabulary: Mapping[str, int]
    ) -> dict[str, NDArray[Any]]:
        """Samples by number as arrays."""

    def tensors(self, index: int, vocabulary: Mapping[str, int]) -> dict[str, Any]:
        """One sample as tensors, as `GameSpliceDataset.tensors`."""


class TorchSamples(Dataset[dict[str, torch.Tensor]]):
    """Samples by number as tensors; a plain data loader pads and masks them.

    One sample is what `GameSpliceDataset.tensors` returns, a batch what `gristmill.chess.collate`
    returns. It can be pickled. Numbers are as those of the dataset.
    """

    def __init__(self, samples: Samples, vocabulary: Mapping[str, int]) -> None:
        self.samples, self.vocabulary = samples, dict(vocabulary)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.samples.tensors(index, self.vocabulary)

    def __getitems__(self, indices: Sequence[int]) -> ColumnBatch:
        """Samples by number as one batch; a data loader of torch calls it."""
        columns = self.samples.batch(indices, self.vocabulary)
        return ColumnBatch({name: torch.from_numpy(found) for name, found in columns.items()})

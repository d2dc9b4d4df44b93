"""The sequences of a ShardReader as an IterableDataset of torch.

Importing this module loads torch, so only `ShardReader.as_torch` imports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy.typing as npt

from gristmill.lazy_exports import naming_the_extra

with naming_the_extra():
    import torch
    from torch.utils.data import IterableDataset, get_worker_info


class Sequences(Protocol):
    """What this module needs of a ShardReader."""

    @property
    def epoch(self) -> int:
        """The epoch that is read now."""

    @property
    def read(self) -> int:
        """Sequences of it that were read before."""

    def start_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""

    def batch_length(self, first: int, batch_size: int, drop_last: bool = False) -> int:
        """Sequences of the batch that begins at `first`."""

    def between(self, first: int, stop: int) -> dict[str, npt.NDArray[Any]]:
        """Sequences of the epoch as one batch."""

    def state(self, read: int | None = None) -> dict[str, Any]:
        """The state after that many sequences of the epoch."""


class TorchSequences(IterableDataset[dict[str, Any]]):
    """The rest of an epoch, for a DataLoader with any number of workers.

    batch_size: sequences of a batch, which the dataset makes: give the loader `batch_size=None`.
        None (default) gives single sequences, which the loader collates.

        data = reader.as_torch(batch_size=16)
        for epoch in range(reader.epoch, 3):
            data.start_epoch(epoch)
            for batch in DataLoader(data, batch_size=None, num_workers=2):
                ...
                checkpoint = data.state(batch)

    The workers give batches in turn, so a loader that keeps their order gives the batches that one
    process would, whatever their number. A batch has the columns of the reader as tensors, and
    `epoch` and `read`: sequences of the epoch up to its end.
    """

    def __init__(
        self, reader: Sequences, batch_size: int | None = None, *, drop_last: bool = False
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size {batch_size}: at least 1")
        self.reader, self.batch_size, self.drop_last = reader, batch_size, drop_last
        # In memory that workers share, so that those that stay hear of the next epoch.
        self._epoch = torch.tensor([reader.epoch]).share_memory_()

    def start_epoch(self, epoch: int) -> None:
        """Go to an epoch in all workers; in the one that a state was loaded for, to its place."""
        if epoch != self.reader.epoch:
            self.reader.start_epoch(epoch)
        self._epoch[0] = epoch

    def state(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The state of the reader after a batch that a loader gave.

        Raises ValueError for a batch of another epoch.
        """
        epoch, read = (int(torch.as_tensor(batch[name]).max()) for name in ("epoch", "read"))
        if epoch != self.reader.epoch:
            raise ValueError(f"the batch is of epoch {epoch}, the dataset of {self.reader.epoch}")
        return self.reader.state(read)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield what one worker reads."""
        worker = get_worker_info()
        turn, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        if self.reader.epoch != (epoch := int(self._epoch[0])):
            self.reader.start_epoch(epoch)
        size = self.batch_size or 1
        first = self.reader.read + turn * size
        while length := self.reader.batch_length(first, size, self.drop_last):
            yield self._tensors(first, first + length)
            first += workers * size

    def _tensors(self, first: int, stop: int) -> dict[str, Any]:
        columns = self.reader.between(first, stop)
        if self.batch_size is None:
            columns = {name: column[0] for name, column in columns.items()}
            tensors = {name: torch.as_tensor(column) for name, column in columns.items()}
        else:
            tensors = {name: torch.from_numpy(column) for name, column in columns.items()}
        return tensors | {"epoch": self.reader.epoch, "read": stop}

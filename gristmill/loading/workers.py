"""Batches that processes of torch's DataLoader read ahead, in order.

Importing this module loads torch, so that only a loader with workers does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from gristmill.lazy_exports import naming_the_extra
from gristmill.loading.reads import Read, Reads

with naming_the_extra():
    from torch.utils.data import DataLoader, Dataset, Sampler


class _Batches(Dataset[Any]):
    """`Reads` as torch's map-style dataset, whose keys are what is to be read."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def __getitem__(self, read: Read) -> Any:
        return self._reads[read]


class _Asked(Sampler[Read]):
    """What a data loader has asked for, in order, and the caller has not been given yet."""

    def __init__(self, reads: Iterator[Read]) -> None:
        self._reads = reads
        self.waiting: deque[Read] = deque()

    def __iter__(self) -> Iterator[Read]:
        for read in self._reads:
            self.waiting.append(read)
            yield read


def read_ahead(
    batches: Reads, reads: Iterator[Read], workers: int, start_method: str | None
) -> Iterator[list[Any]]:
    """Yield what was asked for with its batch, in order.

    start_method: of the processes; None for torch's.
    """
    asked = _Asked(reads)
    loader = DataLoader(
        _Batches(batches),
        sampler=asked,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=start_method,
        collate_fn=_same,
    )
    for batch in loader:
        yield [asked.waiting.popleft(), batch]


def _same(batch: Any) -> Any:
    return batch

"""Batches for data loaders of torch that need no arguments: read at once, collated at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

Sample = TypeVar("Sample")
_Read = TypeVar("_Read", covariant=True)


class Readable(Protocol[_Read]):
    """Samples by number."""

    def __getitem__(self, number: int, /) -> _Read: ...


class Batch(Generic[Sample]):
    """Samples that a reader has read together; a sequence for a collate function of the user."""

    def collated(self) -> dict[str, Any]:
        """What a data loader yields for these samples."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, place: int) -> Sample:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Sample]:
        return (self[place] for place in range(len(self)))


class Row(dict[str, Any]):
    """One sample of a ColumnBatch: a value for each column."""


class ColumnBatch(Batch[Row]):
    """Samples as columns."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        register(Row)

    def collated(self) -> dict[str, Any]:
        """The columns."""
        return self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, place: int) -> Row:
        return Row({name: column[place] for name, column in self._columns.items()})


class SampleBatch(Batch[Sample]):
    """Samples of any type by number, each read when it is asked for.

    samples: of a reader. numbers: of these, from 0. kind: their type. columns: what makes the
    collated form of the numbers.
    """

    def __init__(
        self,
        samples: Readable[Sample],
        numbers: Sequence[int],
        kind: type[Sample],
        columns: Callable[[Sequence[int]], dict[str, Any]],
    ) -> None:
        self._samples, self._numbers, self._columns = samples, numbers, columns
        register(kind)

    def collated(self) -> dict[str, Any]:
        """What `columns` makes of the numbers."""
        return self._columns(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> Sample:
        return self._samples[self._numbers[place]]


def register(kind: type) -> None:
    """Have torch's default collate ask a Batch of samples of this type for its collated form."""
    from torch.utils.data._utils.collate import default_collate_fn_map

    default_collate_fn_map.setdefault(kind, _collate)


def _collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    if isinstance(batch, Batch):
        return batch.collated()
    from torch.utils.data._utils.collate import collate

    if isinstance(batch[0], Row):
        return {
            name: collate([row[name] for row in batch], collate_fn_map=collate_fn_map)
            for name in batch[0]
        }
    raise TypeError(
        f"samples of type {type(batch[0]).__name__} have no default form: pass the dataset's own"
        " `collate` as collate_fn"
    )

"""What a process reads for one batch: samples of each source, in the order of the positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.lazy_exports import naming_the_extra
from gristmill.loading.bijection import Numbers, Words
from gristmill.loading.plan import Step
from gristmill.loading.source import Columns, Source

FORMS: Final = ("torch", "numpy")
"""What the columns of a batch are: tensors or arrays."""


@dataclass(frozen=True)
class Read:
    """One batch, not yet read.

    step: it is of. sources, numbers: int64 [B]. bits: uint64 [B]. real: bool [B], False beyond the
    end of the run. is_last: whether the step ends with it.
    """

    step: Step
    sources: Numbers
    numbers: Numbers
    bits: Words
    real: npt.NDArray[np.bool_]
    is_last: bool


class Reads:
    """Batches by what is to be read.

    sources: of the plan. form: "torch" or "numpy". collate: of the user, or None.
    like: number of the source whose columns a batch without samples has.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        form: str,
        collate: Callable[[dict[str, Any]], Any] | None,
        like: int,
    ) -> None:
        self.sources, self._form, self._collate = tuple(sources), form, collate
        self._like = like
        if form == "torch":
            try:
                with naming_the_extra():
                    import torch  # noqa: F401
            except ModuleNotFoundError as error:
                needs_none = 'Loader(..., form="numpy") gives arrays and needs none'
                raise ModuleNotFoundError(f"{error.msg}; {needs_none}", name=error.name) from error

    def __getitem__(self, read: Read) -> Any:
        """The batch: columns of the sources, and which samples these are."""
        batch: dict[str, Any] = dict(self._columns(read))
        batch |= {"source": read.sources, "number": read.numbers, "key": read.bits}
        batch["real"] = read.real
        if self._form == "torch":
            batch = {name: _tensor(column) for name, column in batch.items()}
        batch |= {"position": read.step.position, "step": read.step.number}
        return batch if self._collate is None else self._collate(batch)

    def _columns(self, read: Read) -> Columns:
        present = sorted(set(read.sources.tolist())) if len(self.sources) > 1 else [0]
        if len(present) <= 1:
            return self.sources[(present or [self._like])[0]].read(read.numbers)
        places = [np.flatnonzero(read.sources == source) for source in present]
        found = [
            self.sources[source].read(read.numbers[at])
            for source, at in zip(present, places, strict=True)
        ]
        for source, columns in zip(present, found, strict=True):
            self._refuse_unlike(present[0], found[0], source, columns)
        back = np.argsort(np.concatenate(places))
        behind = getattr(self.sources[present[0]], "behind", {})
        return {
            name: np.concatenate(_widened([c[name] for c in found], behind.get(name, 0)))[back]
            for name in found[0]
        }

    def _refuse_unlike(self, first: int, its: Columns, other: int, columns: Columns) -> None:
        unlike = sorted(set(its) ^ set(columns))
        unlike += [n for n in its if n in columns and its[n].dtype != columns[n].dtype]
        words = {getattr(self.sources[each], "words", None) for each in (first, other)}
        unlike += ["words of the vocabulary"] * (len(words) - 1)
        if unlike:
            names = [self.sources[each].identity.artifact for each in (first, other)]
            raise GristmillError(
                f"{names[0]} and {names[1]} differ in the column {unlike[0]!r}: a mixture has"
                " sources of the same columns and types: give each a loader of its own"
            )


def _widened(columns: Sequence[npt.NDArray[Any]], behind: int) -> list[npt.NDArray[Any]]:
    """Columns of the same width: shorter ones are filled with `behind`."""
    shape = tuple(max(sizes) for sizes in zip(*(c.shape[1:] for c in columns), strict=True))
    found = []
    for column in columns:
        wider = np.full((len(column), *shape), behind, column.dtype)
        wider[tuple(slice(size) for size in column.shape)] = column
        found.append(wider)
    return found


_SIGNED: Final = {
    np.dtype(np.uint16): np.int32,
    np.dtype(np.uint32): np.int64,
    np.dtype(np.uint64): np.int64,
}
"""torch has little arithmetic on unsigned integers; bits of 64 keep their pattern."""


def _tensor(column: npt.NDArray[Any]) -> Any:
    import torch

    kind = _SIGNED.get(column.dtype)
    if kind is not None:
        column = column.view(kind) if column.dtype == np.uint64 else column.astype(kind)
    if not column.flags.c_contiguous:
        column = np.ascontiguousarray(column)
    return torch.from_numpy(column)

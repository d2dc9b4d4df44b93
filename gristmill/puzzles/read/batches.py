"""Which examples are in which batch, and their tokens. Source: docs/formats/puzzles.md#reader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.domains.source_key import source_key
from gristmill.puzzles.format.metadata import PuzzleDatasetMetadata
from gristmill.puzzles.read.split_files import Integers, MappedSet, compiled_rows

Numbers = npt.NDArray[np.int64]

IGNORED: Final = -100
"""The label without loss, in torch."""
_DRAWN_AT_ONCE: Final = 1 << 13


class Chosen(NamedTuple):
    """The examples of one batch.

    rows: int64 [n], their rows in the set. owners: int64 [n], their puzzles.
    place: where the next batch begins: a place in the group order, or an example.
    """

    rows: Numbers
    owners: Numbers
    examples: int
    place: int


def generator_of(seed: int) -> np.random.Generator:
    """A new generator of the kind that draws the order in training."""
    return np.random.Generator(np.random.Philox(seed=seed))


class TrainBatches:
    """The batches of one iteration over a set, each of `size` examples.

    The order of the groups and the draws of puzzles are those of the original reader with the same
    version of NumPy. The examples of a puzzle that has several are in an order of our own.
    """

    def __init__(self, made: MappedSet, seed: int, iteration: int, epochs: int, size: int) -> None:
        self._made, self._size = made, size
        self._key = np.array([source_key(seed + iteration, "reader", "examples")], np.uint64)
        self._random = generator_of(seed + iteration)
        kind = np.int32 if made.groups < 1 << 31 else np.int64
        self._order = np.empty(epochs * made.groups, kind)
        for epoch in range(epochs):
            part = self._order[epoch * made.groups : (epoch + 1) * made.groups]
            part[:] = self._random.permutation(made.groups)

    def __len__(self) -> int:
        """Groups that are visited."""
        return len(self._order)

    def chosen(self, place: int = 0) -> Iterator[Chosen]:
        """Yield the full batches that begin at a place in the group order; call it once."""
        from gristmill.puzzles.read.batch_kernels import fill

        made = self._made
        drawn, first = np.empty(0, np.int64), 0
        while first + len(drawn) < place:  # draws of batches that were read before
            first += len(drawn)
            drawn = self._drawn(first)
        at = place - first
        while True:
            rows, owners = np.empty(self._size, np.int64), np.empty(self._size, np.int64)
            filled = 0
            while filled < self._size:
                if at == len(drawn):
                    first, at = first + len(drawn), 0
                    drawn = self._drawn(first)
                    if not len(drawn):
                        return  # the last batch is not full
                at, filled = fill(
                    *(drawn, at, first, made.puzzle_indices, made.examples),
                    *(self._key, rows, owners, filled),
                )
                if at < 0:
                    raise _changed(made, "puzzle_indices")
            yield Chosen(rows, owners, self._size, first + at)

    def _drawn(self, first: int) -> Numbers:
        """The puzzles of the next groups in the order; `first` is the next."""
        groups = self._order[first : first + _DRAWN_AT_ONCE]
        low, high = self._made.group_indices[groups], self._made.group_indices[groups + 1]
        try:
            drawn: Numbers = self._random.integers(low, high, dtype=np.int64)
        except ValueError as error:
            raise _changed(self._made, "group_indices") from error
        return drawn


def warn_of_no_batch(sets: Sequence[MappedSet], epochs: int, size: int) -> None:
    """Warn the caller of a reader that a pass of training had no full batch.

    The original reader is silent about it, and a training loop that never runs says nothing.
    """
    most = max((made.groups for made in sets), default=0) * epochs
    warnings.warn(
        f"no batch: a pass draws {most:,} puzzles of a set, one of each group in each epoch, which "
        f"do not fill a batch of {size:,} examples; a batch that is not full is dropped: choose a "
        "smaller global_batch_size, or more epochs_per_iter",
        stacklevel=3,
    )


def batches_in_order(
    made: MappedSet, size: int, rank: int, ranks: int, place: int
) -> Iterator[Chosen]:
    """Yield the rows of one rank, of every batch; the examples are in order, each once.

    rank, ranks: which part of each batch is wanted; it may be empty in the last batch.
    """
    own = size // ranks
    for first in range(place, made.examples, size):
        end = min(made.examples, first + size)
        rows = np.arange(first + rank * own, min(end, first + (rank + 1) * own), dtype=np.int64)
        yield Chosen(rows, owners_of(made, rows), end - first, end)


def owners_of(made: MappedSet, rows: Numbers) -> Numbers:
    """The puzzles of examples, int64 [n]; of damaged indices also numbers that no puzzle has.

    made: the set. rows: int64 [n], from 0 up to the number of its examples.
    """
    indices = made.puzzle_indices
    # Another type of the wanted values would have NumPy copy the whole array.
    return np.searchsorted(indices, rows.astype(indices.dtype), "right") - 1


def _changed(made: MappedSet, field: str) -> BadInput:
    return BadInput(made.paths[field], "was changed after it was opened: open the dataset again")


def batch_of(
    made: MappedSet, metadata: PuzzleDatasetMetadata, rows: Numbers, owners: Numbers, size: int
) -> dict[str, Any]:
    """The tokens of examples, padded to `size` rows: int32 arrays by name.

    rows, owners: int64 [n], the examples and their puzzles, n at most `size`.
    """
    if len(owners) and not 0 <= owners.min() <= owners.max() < len(made.puzzle_identifiers):
        raise _changed(made, "puzzle_indices")
    inputs = _tokens(made.inputs, rows, size, None)
    labels = _tokens(made.labels, rows, size, metadata.ignore_label_id)
    identifiers = np.empty(size, np.int32)
    identifiers[: len(rows)] = made.puzzle_identifiers[owners]
    inputs[len(rows) :] = metadata.pad_id
    labels[len(rows) :] = IGNORED
    identifiers[len(rows) :] = metadata.blank_identifier_id
    return {"inputs": inputs, "labels": labels, "puzzle_identifiers": identifiers}


def _tokens(
    tokens: Integers, rows: Numbers, size: int, ignored: int | None
) -> npt.NDArray[np.int32]:
    from gristmill.puzzles.read.batch_kernels import copy_tokens

    out = np.empty((size, tokens.shape[1]), np.int32)
    source, places = compiled_rows(tokens, rows)
    value, replaced = (0, 0) if ignored is None else (ignored, IGNORED)
    copy_tokens(source, places, np.int32(value), np.int32(replaced), out)
    return out

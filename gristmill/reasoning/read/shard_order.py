"""Which sequences a rank reads in an epoch, and in which order.

`shard_state.py` continues in the middle of an epoch; `shard_reader.py` reads.
Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError

Uneven = Literal["each", "pad", "stop"]
UNEVEN: Final[tuple[Uneven, ...]] = get_args(Uneven)

Rest = Mapping[int, int]
"""What is left of an epoch: shard -> the first sequence that nobody has read."""


class Piece(NamedTuple):
    """Sequences `start` to `stop` of the order of one shard; shards count from 0."""

    shard: int
    start: int
    stop: int


class Place(NamedTuple):
    """Where a rank is in an epoch: in which of its pieces, and at which sequence of the shard."""

    shard_position: int
    sequence_in_shard: int


@dataclass(frozen=True)
class Order:
    """The order in which the ranks read the shards.

    sizes: int64 [shards], sequences of each shard, in the order of the manifest.
    world_size: number of ranks; rank r owns the shards r, r + world_size, ...
    uneven: what a rank with fewer sequences does: "each" reads its own once and ends early, "pad"
        begins its own once more until it has as many as the longest rank, "stop" ends all ranks
        where the shortest ends.
    seed: of the shuffle of shards and of sequences in a shard; None for the manifest's order.
    rotate: by how many shards the start moves in each epoch.
    rests: what is left of epochs that were resumed at another world size.
    """

    sizes: npt.NDArray[np.int64]
    world_size: int
    uneven: Uneven = "each"
    seed: int | None = None
    rotate: int = 0
    rests: Mapping[int, Rest] = field(default_factory=dict)

    def pieces(self, rank: int, epoch: int) -> list[Piece]:
        """What a rank reads in an epoch, in order.

        Raises GristmillError where a rank that has nothing should be padded.
        """
        own = self.own(rank, epoch)
        if self.uneven == "each" or self.world_size == 1:
            return own
        lengths = [_length(self.own(each, epoch)) for each in range(self.world_size)]
        if self.uneven == "stop":
            return _taken(own, min(lengths))
        again = own or [Piece(s, 0, int(self.sizes[s])) for s in self.shards(rank, epoch)]
        again = [piece for piece in again if piece.stop > piece.start]
        if not again and max(lengths):
            raise GristmillError(
                f"rank {rank} of {self.world_size} has no sequence to pad with: choose"
                ' uneven="each" or "stop", or fewer ranks'
            )
        return _taken(own + again * -(-max(lengths) // max(_length(again), 1)), max(lengths))

    def own(self, rank: int, epoch: int) -> list[Piece]:
        """What a rank would read in an epoch if no other rank mattered, in order."""
        rest = self.rests.get(epoch)
        own = self.shards(rank, epoch)
        starts = dict.fromkeys(own, 0) if rest is None else rest
        pieces = (Piece(s, starts[s], int(self.sizes[s])) for s in own if s in starts)
        return [piece for piece in pieces if piece.stop > piece.start]

    def shards(self, rank: int, epoch: int) -> list[int]:
        """The shards that a rank owns, in the order of an epoch."""
        shards = self._shuffled(epoch) if self.seed is not None else range(len(self.sizes))
        own = [shard for shard in shards if shard % self.world_size == rank]
        first = self.rotate * epoch % len(own) if own else 0
        return own[first:] + own[:first]

    def sequences(self, shard: int, epoch: int) -> npt.NDArray[np.int64] | None:
        """The shuffled order of a shard's sequences, int64 [size]; None for the file's order."""
        if self.seed is None:
            return None
        shuffled: npt.NDArray[np.int64] = _generator(self.seed, epoch, shard + 1).permutation(
            int(self.sizes[shard])
        )
        return shuffled

    def generator(self) -> Any:
        """A new generator of the kind and seed of the shuffles; None where nothing is shuffled."""
        return None if self.seed is None else _generator(self.seed, 0, 0)

    def _shuffled(self, epoch: int) -> list[int]:
        assert self.seed is not None
        shuffled: list[int] = _generator(self.seed, epoch, 0).permutation(len(self.sizes)).tolist()
        return shuffled


class Walk:
    """The pieces of one rank and epoch by number of sequence."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """Sequences up to the end of each piece, int64 [pieces]."""
        return np.cumsum([p.stop - p.start for p in self.pieces], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1]) if self.pieces else 0

    def place(self, read: int) -> Place:
        """Where a rank is after `read` sequences."""
        at = int(self.ends.searchsorted(read, "right"))
        if at == len(self.pieces):
            return Place(at, 0)
        before = int(self.ends[at - 1]) if at else 0
        return Place(at, self.pieces[at].start + read - before)

    def read(self, place: Place) -> int | None:
        """How many sequences were read before a place; None for a place outside."""
        at, sequence = place
        if at == len(self.pieces) and sequence == 0:
            return len(self)
        if not 0 <= at < len(self.pieces):
            return None
        piece = self.pieces[at]
        if not piece.start <= sequence < piece.stop:
            return None
        return (int(self.ends[at - 1]) if at else 0) + sequence - piece.start

    def cut(self, first: int, stop: int) -> list[Piece]:
        """The pieces of the sequences from `first` to `stop`."""
        at, start = self.place(first)
        pieces: list[Piece] = []
        while first < stop:
            piece = self.pieces[at]
            begin = piece.start if pieces else start
            pieces.append(Piece(piece.shard, begin, min(piece.stop, begin + stop - first)))
            first += pieces[-1].stop - begin
            at += 1
        return pieces

    def last_shard(self, read: int) -> int | None:
        """The shard of the last sequence that was read; None before the first."""
        if not read:
            return None
        return self.pieces[int(np.searchsorted(self.ends, read - 1, "right"))].shard


def rest_of(pieces: Sequence[Piece], read: int) -> list[Piece]:
    """What is left of pieces after `read` sequences."""
    left = []
    for shard, start, stop in pieces:
        passed = min(read, stop - start)
        read -= passed
        if start + passed < stop:
            left.append(Piece(shard, start + passed, stop))
    return left


def _taken(pieces: Sequence[Piece], count: int) -> list[Piece]:
    """The first `count` sequences of pieces."""
    taken = []
    for shard, start, stop in pieces:
        length = min(stop - start, count)
        if length > 0:
            taken.append(Piece(shard, start, start + length))
            count -= length
    return taken


def _length(pieces: Sequence[Piece]) -> int:
    return sum(piece.stop - piece.start for piece in pieces)


def _generator(*numbers: int) -> Any:
    return np.random.Generator(np.random.PCG64(numbers))

"""The order of sequences; a reader's state. Source: `docs/formats/reasoning.md#reader-state`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError
from gristmill.loading import bijection

Uneven = Literal["each", "pad", "stop"]
UNEVEN: Final[tuple[Uneven, ...]] = get_args(Uneven)

VERSION: Final = 2
"""Of the states that readers write and take."""

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
    identity: text that names the shards, so that others have another order of the same seed.
    """

    sizes: npt.NDArray[np.int64]
    world_size: int
    uneven: Uneven = "each"
    seed: int | None = None
    rotate: int = 0
    rests: Mapping[int, Rest] = field(default_factory=dict)
    identity: str = ""

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
        count = len(self.sizes)
        shards = range(count) if self.seed is None else self._loaders.shards(epoch).tolist()
        own = [shard for shard in shards if shard % self.world_size == rank]
        first = self.rotate * epoch % len(own) if own else 0
        return own[first:] + own[:first]

    def sequences(self, shard: int, epoch: int) -> npt.NDArray[np.int64] | None:
        """The shuffled order of a shard's sequences, int64 [size]; None for the file's order."""
        if self.seed is None:
            return None
        size = int(self.sizes[shard])
        shards = self._loaders.shards(epoch)
        before = self.sizes[shards[: np.flatnonzero(shards == shard)[0]]].sum()
        places = epoch * self._loaders.length + before + np.arange(size)
        numbers: npt.NDArray[np.int64] = self._loaders.numbers(places) - self._loaders.cuts[shard]
        return numbers

    @cached_property
    def _loaders(self) -> bijection.Order:
        """The loader's order 1 of all shards, with windows of one shard."""
        cuts = np.append(0, np.cumsum(self.sizes))
        return bijection.Order(cuts, self.seed, self.identity, window=1)


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
    taken = []
    for shard, start, stop in pieces:
        length = min(stop - start, count)
        if length > 0:
            taken.append(Piece(shard, start, start + length))
            count -= length
    return taken


def _length(pieces: Sequence[Piece]) -> int:
    return sum(piece.stop - piece.start for piece in pieces)


_SAME: Final = ("manifest_sha256", "select", "seed", "rotate", "uneven")
_NUMBERS: Final = ("epoch", "shard_position", "sequence_in_shard", "rank", "world_size")


class Position(NamedTuple):
    """Where one rank is: the epoch, from 0, and how many of its sequences were read."""

    epoch: int = 0
    read: int = 0


def state_of(
    order: Order, identity: Mapping[str, Any], paths: Sequence[str], rank: int, position: Position
) -> dict[str, Any]:
    """The state of a rank: an object of JSON.

    identity: what tells this reading from another one: `manifest_sha256` and `select`.
    """
    walk = Walk(order.pieces(rank, position.epoch))
    place = walk.place(position.read)
    last = walk.last_shard(position.read)
    rests = {e: rest for e, rest in order.rests.items() if e >= position.epoch}
    return {
        "version": VERSION,
        "epoch": position.epoch,
        **place._asdict(),
        "rank": rank,
        "world_size": order.world_size,
        **identity,
        "seed": order.seed,
        "rotate": order.rotate,
        "uneven": order.uneven,
        "last_shard": None if last is None else paths[last],
        "finished": sorted({p.shard for p in walk.pieces[: place.shard_position]}),
        "rests": {str(e): sorted(map(list, rest.items())) for e, rest in sorted(rests.items())},
    }


def resumed(
    states: Sequence[Mapping[str, Any]], order: Order, identity: Mapping[str, Any], rank: int
) -> tuple[Order, Position]:
    """The order and the position with which a rank continues.

    states: of all ranks; where the number of ranks is the same, that of this rank is enough.

    At another number of ranks the sequences that no rank has read, of each epoch, go to the ranks
    that own their shards now, and every rank begins with the earliest of these epochs.

    Raises GristmillError for a state of other shards, of another order or another version, one
    that is damaged, and where the states of some ranks are missing.
    """
    expected = {**identity, "seed": order.seed, "rotate": order.rotate, "uneven": order.uneven}
    found = {}
    for state in states:
        _check(state, expected)
        found[state["rank"]] = state
    if not found:
        raise GristmillError("there is no state to continue from: give one of each rank")
    sizes = {state["world_size"] for state in states}
    if len(sizes) > 1:
        raise GristmillError(f"the states are of {sizes} ranks: give those of one checkpoint")
    (world_size,) = sizes
    before = replace(order, world_size=world_size)
    if world_size == order.world_size and rank in found:
        before = replace(before, rests=_rests(found[rank], order))
        return before, _position(found[rank], before)
    missing = sorted(set(range(world_size)) - found.keys())
    if missing:
        raise GristmillError(
            f"the states are of {world_size} ranks and this reader is rank {rank} of"
            f" {order.world_size}: the states of ranks {missing} are missing"
        )
    # A rank that is in a later epoch has forgotten the rests of those before.
    rests = {e: rest for each in found.values() for e, rest in _rests(each, order).items()}
    before = replace(before, rests=rests)
    positions = {each: _position(found[each], before) for each in range(world_size)}
    return _dealt(before, positions, order.world_size)


def _dealt(
    before: Order, positions: Mapping[int, Position], world_size: int
) -> tuple[Order, Position]:
    """What is left, for another number of ranks."""
    epochs = [position.epoch for position in positions.values()]
    rests = {e: rest for e, rest in before.rests.items() if e > max(epochs)}
    for epoch in range(min(epochs), max(epochs) + 1):
        left: dict[int, int] = {}
        for rank, position in positions.items():
            if position.epoch <= epoch:
                read = position.read if position.epoch == epoch else 0
                own = before.own(rank, epoch)
                left |= {piece.shard: piece.start for piece in rest_of(own, read)}
        rests[epoch] = left
    return replace(before, world_size=world_size, rests=rests), Position(min(epochs))


def _check(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse what is not a state of this reading."""
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        raise GristmillError(f"not a state of version {VERSION} of a ShardReader: {state!r:.100}")
    for name in _NUMBERS:
        if type(state.get(name)) is not int or state[name] < 0:
            raise GristmillError(f"the state is damaged: {name} is {state.get(name)!r:.50}")
    if not state["rank"] < state["world_size"]:
        raise GristmillError(f"the state is damaged: rank {state['rank']}")
    for name in _SAME:
        if state.get(name, "missing") != expected[name]:
            what = "of other shards" if name == "manifest_sha256" else "of another order"
            raise GristmillError(
                f"the state is {what}: its {name} is {state.get(name)!r:.80}, here it is"
                f" {expected[name]!r:.80}: open the shards that it was written for, in the same"
                " way, or begin a new epoch"
            )


def _rests(state: Mapping[str, Any], order: Order) -> dict[int, Rest]:
    """The epochs of a state that were resumed at another world size."""
    try:
        rests: dict[int, Rest] = {
            int(e): {int(s): int(f) for s, f in rest} for e, rest in state["rests"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise GristmillError(f"the state is damaged: rests: {error!r}") from error
    for rest in rests.values():
        for shard, start in rest.items():
            if not (0 <= shard < len(order.sizes) and 0 <= start <= order.sizes[shard]):
                raise GristmillError(f"the state is damaged: rests: shard {shard} from {start}")
    return rests


def _position(state: Mapping[str, Any], order: Order) -> Position:
    place = Place(state["shard_position"], state["sequence_in_shard"])
    read = Walk(order.pieces(state["rank"], state["epoch"])).read(place)
    if read is None:
        raise GristmillError(f"the state is damaged: there is no {place}")
    return Position(state["epoch"], read)

"""The state of a reader: written into checkpoints, and continued at any number of ranks.

Source: `docs/formats/reasoning.md#reader-state`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from gristmill.contract import GristmillError
from gristmill.reading.stream import refuse_other_stream, stream_of
from gristmill.reasoning.read.shard_order import Order, Place, Rest, Walk, rest_of

VERSION: Final = 1
_SAME: Final = ("manifest_sha256", "select", "seed", "rotate", "uneven")
_NUMBERS: Final = ("epoch", "shard_position", "sequence_in_shard", "rank", "world_size")


class Position(NamedTuple):
    """Where one rank is.

    epoch: from 0. read: sequences of the epoch that were read.
    """

    epoch: int = 0
    read: int = 0


def state_of(
    order: Order, identity: Mapping[str, Any], paths: Sequence[str], rank: int, position: Position
) -> dict[str, Any]:
    """The state of a rank: an object of JSON.

    order: in which the shards are read.
    identity: what tells this reading from another one: `manifest_sha256` and `select`.
    paths: of the shards.
    """
    walk = Walk(order.pieces(rank, position.epoch))
    place = walk.place(position.read)
    last = walk.last_shard(position.read)
    rests = {e: rest for e, rest in order.rests.items() if e >= position.epoch}
    generator = order.generator()
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
        **({} if generator is None else stream_of(generator)),
    }


def resumed(
    states: Sequence[Mapping[str, Any]], order: Order, identity: Mapping[str, Any], rank: int
) -> tuple[Order, Position]:
    """The order and the position with which a rank continues.

    states: of all ranks; where the number of ranks is the same, that of this rank is enough.
    order: in which this reader would read the shards.
    identity: as for `state_of`.

    At another number of ranks the sequences that no rank has read, of each epoch, go to the ranks
    that own their shards now, and every rank begins with the earliest of these epochs.

    Raises GristmillError for a state of other shards, of another order or another random stream,
    one that is damaged, and where the states of some ranks are missing.
    """
    expected = {**identity, "seed": order.seed, "rotate": order.rotate, "uneven": order.uneven}
    found = {}
    for state in states:
        _check(state, expected)
        if (generator := order.generator()) is not None:
            refuse_other_stream(state, generator)
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
        raise GristmillError(f"is no state of version {VERSION} of a ShardReader: {state!r:.100}")
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
    """The position of a state."""
    place = Place(state["shard_position"], state["sequence_in_shard"])
    read = Walk(order.pieces(state["rank"], state["epoch"])).read(place)
    if read is None:
        raise GristmillError(f"the state is damaged: there is no {place}")
    return Position(state["epoch"], read)

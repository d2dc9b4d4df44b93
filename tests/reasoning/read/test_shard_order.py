"""Orders of shards: every sequence once in an epoch, over all ranks, in a stated order."""

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.reasoning.read.shard_order import (
    Order,
    Piece,
    Place,
    Position,
    Walk,
    rest_of,
    resumed,
    state_of,
)


def order(*sizes: int, world_size: int = 1, **options: object) -> Order:
    return Order(np.array(sizes, np.int64), world_size, **options)  # type: ignore[arg-type]


def read(order: Order, epoch: int) -> Counter[tuple[int, int]]:
    """How often each sequence is read in an epoch, over all ranks."""
    return Counter(
        (piece.shard, sequence)
        for rank in range(order.world_size)
        for piece in order.pieces(rank, epoch)
        for sequence in range(piece.start, piece.stop)
    )


def shuffled(order: Order, shard: int, epoch: int = 0) -> list[int]:
    """The order of a shard's sequences, which has a seed."""
    found = order.sequences(shard, epoch)
    assert found is not None
    return list(map(int, found))


def lengths(order: Order, epoch: int = 0) -> list[int]:
    return [len(Walk(order.pieces(rank, epoch))) for rank in range(order.world_size)]


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("rotate", [0, 1, 3])
def test_an_epoch_has_every_sequence_once(world_size, seed, rotate):
    sizes = [3, 1, 4, 0, 1, 5, 9, 2, 6]
    expected = Counter((s, k) for s, size in enumerate(sizes) for k in range(size))
    for epoch in range(4):
        made = order(*sizes, world_size=world_size, seed=seed, rotate=rotate)
        for shard, size in enumerate(sizes if seed else ()):
            assert sorted(shuffled(made, shard, epoch)) == list(range(size))
        assert read(made, epoch) == expected
        for rank in range(world_size):
            assert set(made.shards(rank, epoch)) == set(range(rank, 9, world_size))


def test_orders_of_the_manifest_and_of_a_seed_are_alike_for_all_ranks():
    assert order(3, 1, 4, 1, 5, world_size=2).pieces(0, 7) == [
        Piece(0, 0, 3),
        Piece(2, 0, 4),
        Piece(4, 0, 5),
    ]
    assert order(3).sequences(0, 1) is None
    made = order(1, 1, 1, 1, 1, world_size=2, rotate=2)
    assert [made.shards(0, epoch) for epoch in range(4)] == [
        *([0, 2, 4], [4, 0, 2], [2, 4, 0], [0, 2, 4])
    ]
    assert made.shards(1, 1) == [1, 3]
    made = order(*[50] * 20, seed=3)
    shards = [made.shards(0, epoch) for epoch in (0, 1, 0)]
    assert shards[0] == shards[2] != shards[1] != sorted(shards[1])
    assert order(*[50] * 20, seed=4).shards(0, 0) != shards[0]
    found = [shuffled(made, s, e) for s, e in ((0, 0), (1, 0), (0, 1))]
    assert all(sorted(each) == list(range(50)) for each in found)
    assert all(each != other for each, other in pairwise(found))
    whole = order(*[1] * 9, seed=3).shards(0, 2)
    for rank in range(2):
        own = order(*[1] * 9, seed=3, world_size=2).shards(rank, 2)
        assert own == [shard for shard in whole if shard % 2 == rank]


def test_ranks_are_padded_with_their_own_shards_or_stopped_at_the_shortest():
    made = order(5, 2, 4, world_size=2, uneven="pad")
    assert lengths(made) == [9, 9]
    assert made.pieces(1, 0) == [*[Piece(1, 0, 2)] * 4, Piece(1, 0, 1)]
    assert made.pieces(0, 0) == [Piece(0, 0, 5), Piece(2, 0, 4)]
    made = order(5, 2, 4, world_size=2, uneven="stop")
    assert made.pieces(0, 0) == [Piece(0, 0, 2)]
    assert made.pieces(1, 0) == [Piece(1, 0, 2)]
    assert lengths(order(5, 2, 4, world_size=2)) == [9, 2]
    with pytest.raises(GristmillError, match="rank 1 of 2 has no sequence to pad with"):
        order(3, 0, world_size=2, uneven="pad").pieces(1, 0)
    made = order(3, 2, world_size=2, uneven="pad", rests={4: {0: 1}})
    assert made.pieces(0, 4) == [Piece(0, 1, 3)]
    assert made.pieces(1, 4) == [Piece(1, 0, 2)]
    assert made.own(1, 4) == []
    assert made.pieces(1, 5) == [Piece(1, 0, 2), Piece(1, 0, 1)]


@pytest.mark.parametrize(("uneven", "expected"), [("each", [3, 0]), ("stop", [0, 0])])
def test_a_rank_without_sequences_reads_nothing(uneven, expected):
    assert lengths(order(3, world_size=2, uneven=uneven)) == expected


def test_a_walk_counts_sequences_over_pieces():
    walk = Walk([Piece(4, 2, 5), Piece(1, 0, 1)])
    places = [Place(0, 2), Place(0, 3), Place(0, 4), Place(1, 0), Place(2, 0)]
    assert [walk.place(read) for read in range(5)] == places
    assert [walk.read(place) for place in places] == list(range(5))
    assert [walk.last_shard(read) for read in range(5)] == [None, 4, 4, 4, 1]
    for place in (Place(0, 1), Place(0, 5), Place(1, 1), Place(2, 1), Place(3, 0), Place(-1, 0)):
        assert walk.read(place) is None
    assert walk.cut(1, 4) == [Piece(4, 3, 5), Piece(1, 0, 1)]
    assert walk.cut(0, 3) == [Piece(4, 2, 5)]
    assert walk.cut(2, 2) == []
    assert rest_of(walk.pieces, 4) == []
    assert Walk([]).place(0) == Place(0, 0)
    assert len(Walk([])) == 0


def test_the_shuffle_of_a_seed_never_changes_and_is_another_for_other_shards():
    """A checkpoint continues under later versions."""
    made = order(*[6] * 6, seed=11)
    assert made.shards(0, 4) == [1, 3, 2, 4, 0, 5]
    assert shuffled(made, 2, 4) == [1, 0, 2, 4, 3, 5]
    made = [order(*[50] * 20, seed=3, identity=text) for text in ("a", "b", "a")]
    first, second, third = ((o.shards(0, 0), shuffled(o, 4)) for o in made)
    assert first == third
    assert first[0] != second[0]
    assert first[1] != second[1]


IDENTITY = {"manifest_sha256": "ab", "select": None}
Read = Counter[tuple[int, int, int]]


class Ranks:
    """Readers of all ranks, without files."""

    def __init__(self, order: Order, states: list[dict[str, Any]] | None = None) -> None:
        self.read: Read = Counter()
        self.order = [order] * order.world_size
        self.at = [Position()] * order.world_size
        if states is not None:
            both = [resumed(states, order, IDENTITY, r) for r in range(order.world_size)]
            self.order, self.at = [o for o, _ in both], [p for _, p in both]

    def advance(self, rank: int, count: int) -> None:
        """Read sequences; after the last of an epoch begins the next."""
        for _ in range(count):
            epoch, done = self.at[rank].epoch, self.at[rank].read
            walk = Walk(self.order[rank].pieces(rank, epoch))
            if done >= len(walk):
                self.at[rank] = Position(epoch + 1)
                continue
            (piece,) = walk.cut(done, done + 1)
            self.read[epoch, piece.shard, piece.start] += 1
            self.at[rank] = Position(epoch, done + 1)

    def finish(self, epoch: int) -> None:
        """Read until every rank has begun `epoch`."""
        for rank in range(len(self.at)):
            while self.at[rank].epoch < epoch:
                self.advance(rank, 1)

    def states(self) -> list[dict[str, Any]]:
        paths = [f"shard {n}" for n in range(len(self.order[0].sizes))]
        states = [
            state_of(order, IDENTITY, paths, rank, at)
            for rank, (order, at) in enumerate(zip(self.order, self.at, strict=True))
        ]
        loaded: list[dict[str, Any]] = json.loads(json.dumps(states))
        return loaded


def whole(sizes: list[int], *epochs: int) -> Read:
    return Counter((e, s, k) for e in epochs for s, size in enumerate(sizes) for k in range(size))


@pytest.mark.parametrize("seed", range(60))
def test_any_chain_of_world_sizes_reads_every_sequence_of_each_epoch_once(seed):
    chance = random.Random(seed)
    sizes = [chance.randrange(0, 7) for _ in range(chance.randint(1, 12))]
    order = Order(
        np.array(sizes, np.int64),
        chance.randint(1, 8),
        "each",
        chance.choice([None, 1]),
        chance.choice([0, 1, 2]),
    )
    read: Read = Counter()
    states = None
    for _ in range(chance.randint(2, 5)):
        ranks = Ranks(replace(order, world_size=chance.choice([1, 2, 3, 7])), states)
        for rank in range(len(ranks.at)):
            ranks.advance(rank, chance.randrange(0, 12))
        read += ranks.read
        states = ranks.states()
    # A rank may have been in a later epoch before it went back to the earliest of all.
    last = max([0, *(epoch for epoch, _, _ in read)])
    last = max(last, *(state["epoch"] for state in states or []))
    ranks = Ranks(order, states)
    ranks.finish(last + 1)
    assert read + ranks.read == whole(sizes, *range(last + 1))


@pytest.mark.parametrize("uneven", ["pad", "stop"])
@pytest.mark.parametrize("worlds", [(3, 2), (2, 7), (7, 1), (1, 3)])
def test_padded_and_stopped_ranks_continue_with_what_no_rank_has_read(uneven, worlds):
    sizes = [4, 2, 5, 3, 1, 6, 2, 4]
    order = Order(np.array(sizes, np.int64), worlds[0], uneven)
    before = Ranks(order)
    for rank in range(worlds[0]):
        before.advance(rank, 1)
    after = Ranks(replace(order, world_size=worlds[1]), before.states())
    left = whole(sizes, 0) - before.read
    own = Counter(
        (0, piece.shard, sequence)
        for rank in range(worlds[1])
        for piece in after.order[0].own(rank, 0)
        for sequence in range(piece.start, piece.stop)
    )
    assert own == left
    after.finish(1)
    lengths = {len(Walk(o.pieces(rank, 0))) for rank, o in enumerate(after.order)}
    assert len(lengths) == 1
    assert (set(after.read) >= set(left)) if uneven == "pad" else (after.read <= left)


@pytest.mark.parametrize("uneven", ["each", "pad", "stop"])
def test_a_rank_continues_from_its_own_state_alone_at_the_same_world_size(uneven):
    order = Order(np.array([5, 2, 4, 1], np.int64), 2, uneven, 9)
    for steps in range(14):
        ranks = Ranks(order)
        ranks.advance(1, steps)
        (_, state) = ranks.states()
        assert resumed([state], order, IDENTITY, 1) == (order, ranks.at[1])


def test_a_second_change_in_one_epoch_keeps_what_the_first_dealt():
    sizes = [6] * 6
    read: Read = Counter()
    states = None
    for world_size in (2, 3, 1, 5):
        ranks = Ranks(Order(np.array(sizes, np.int64), world_size), states)
        for rank in range(world_size):
            ranks.advance(rank, 2)
        read, states = read + ranks.read, ranks.states()
        assert states[0]["epoch"] == 0
        assert max(read.values()) == 1


def test_states_name_finished_shards_and_need_all_ranks_of_a_checkpoint():
    ranks = Ranks(Order(np.array([2, 9, 2, 9, 2], np.int64), 2))
    ranks.advance(0, 3)
    assert ranks.states()[0] == {
        **{"version": 2, "epoch": 0, "shard_position": 1, "sequence_in_shard": 1},
        **{"rank": 0, "world_size": 2, **IDENTITY, "seed": None, "rotate": 0, "uneven": "each"},
        **{"last_shard": "shard 2", "finished": [0], "rests": {}},
    }
    for wrong in ([], {}, "state", None):
        with pytest.raises(GristmillError, match=r"not a state|no state to"):
            resumed([wrong] if wrong != [] else [], ORDER, IDENTITY, 0)  # type: ignore[list-item]
    states = Ranks(ORDER).states()
    three = replace(ORDER, world_size=3)
    with pytest.raises(GristmillError, match=r"states of ranks \[0\] are missing"):
        resumed(states[1:], three, IDENTITY, 2)
    with pytest.raises(GristmillError, match=r"states of ranks \[1\] are missing"):
        resumed(states[:1], ORDER, IDENTITY, 1)
    with pytest.raises(GristmillError, match="those of one checkpoint"):
        resumed([*states, Ranks(three).states()[2]], three, IDENTITY, 2)


ORDER = Order(np.array([3, 3, 3], np.int64), 2)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"manifest_sha256": "cd"}, "of other shards"),
        ({"select": '{"subject": ["x"]}'}, "another order: its select"),
        ({"seed": 1}, "another order: its seed is 1, here it is None"),
        ({"rotate": 1}, "another order: its rotate"),
        ({"uneven": "pad"}, "another order: its uneven"),
        ({"version": 3}, "not a state of version 2"),
        ({"version": 1}, "not a state of version 2"),
        ({"epoch": -1}, "damaged: epoch"),
        ({"epoch": "0"}, "damaged: epoch"),
        ({"epoch": True}, "damaged: epoch"),
        ({"rank": 2}, "damaged: rank 2"),
        ({"shard_position": 5}, "damaged: there is no"),
        ({"sequence_in_shard": 3}, "damaged: there is no"),
        ({"rests": None}, "damaged: rests"),
        ({"rests": {"0": [[3, 0]]}}, "damaged: rests: shard 3"),
        ({"rests": {"0": [[0, 4]]}}, "damaged: rests: shard 0 from 4"),
        ({"rests": {"0": [0]}}, "damaged: rests"),
    ],
)
def test_a_state_of_something_else_is_refused(change, text):
    state = Ranks(ORDER).states()[0] | change
    with pytest.raises(GristmillError, match=text):
        resumed([state], ORDER, IDENTITY, 0)

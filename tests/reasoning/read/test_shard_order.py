"""Orders of shards: every sequence once in an epoch, over all ranks, in a stated order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.reasoning.read.shard_order import Order, Piece, Place, Uneven, Walk, rest_of


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


def lengths(order: Order, epoch: int = 0) -> list[int]:
    return [len(Walk(order.pieces(rank, epoch))) for rank in range(order.world_size)]


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("rotate", [0, 1, 3])
def test_an_epoch_has_every_sequence_once(world_size: int, seed: int | None, rotate: int) -> None:
    sizes = [3, 1, 4, 1, 5, 9, 2, 6]
    expected = Counter((s, k) for s, size in enumerate(sizes) for k in range(size))
    for epoch in range(4):
        made = order(*sizes, world_size=world_size, seed=seed, rotate=rotate)
        assert read(made, epoch) == expected
        for rank in range(world_size):
            assert set(made.shards(rank, epoch)) == set(range(rank, 8, world_size))


def test_without_a_seed_the_order_is_that_of_the_manifest() -> None:
    assert order(3, 1, 4, 1, 5, world_size=2).pieces(0, 7) == [
        Piece(0, 0, 3),
        Piece(2, 0, 4),
        Piece(4, 0, 5),
    ]
    assert order(3).sequences(0, 1) is None


def test_the_start_moves_in_each_epoch() -> None:
    made = order(1, 1, 1, 1, 1, world_size=2, rotate=2)
    assert [made.shards(0, epoch) for epoch in range(4)] == [
        *([0, 2, 4], [4, 0, 2], [2, 4, 0], [0, 2, 4])
    ]
    assert made.shards(1, 1) == [1, 3]


def test_a_seed_shuffles_shards_and_sequences_otherwise_in_each_epoch() -> None:
    made = order(*[50] * 20, seed=3)
    shards = [made.shards(0, epoch) for epoch in (0, 1, 0)]
    assert shards[0] == shards[2] != shards[1] != sorted(shards[1])
    assert order(*[50] * 20, seed=4).shards(0, 0) != shards[0]
    shuffled = [made.sequences(s, e) for s, e in ((0, 0), (1, 0), (0, 1))]
    for each, other in pairwise(shuffled):
        assert each is not None
        assert other is not None
        assert sorted(each) == list(range(50))
        assert each.tolist() != other.tolist()


def test_the_shuffled_order_of_all_shards_does_not_depend_on_the_ranks() -> None:
    whole = order(*[1] * 9, seed=3).shards(0, 2)
    for rank in range(2):
        own = order(*[1] * 9, seed=3, world_size=2).shards(rank, 2)
        assert own == [shard for shard in whole if shard % 2 == rank]


def test_padding_wraps_in_the_ranks_own_list() -> None:
    made = order(5, 2, 4, world_size=2, uneven="pad")
    assert lengths(made) == [9, 9]
    assert made.pieces(1, 0) == [*[Piece(1, 0, 2)] * 4, Piece(1, 0, 1)]
    assert made.pieces(0, 0) == [Piece(0, 0, 5), Piece(2, 0, 4)]


def test_stopping_ends_all_ranks_at_the_shortest() -> None:
    made = order(5, 2, 4, world_size=2, uneven="stop")
    assert made.pieces(0, 0) == [Piece(0, 0, 2)]
    assert made.pieces(1, 0) == [Piece(1, 0, 2)]
    assert lengths(order(5, 2, 4, world_size=2)) == [9, 2]


@pytest.mark.parametrize(("uneven", "expected"), [("each", [3, 0]), ("stop", [0, 0])])
def test_a_rank_without_sequences_reads_nothing(uneven: Uneven, expected: list[int]) -> None:
    assert lengths(order(3, world_size=2, uneven=uneven)) == expected


def test_a_rank_without_sequences_cannot_be_padded() -> None:
    with pytest.raises(GristmillError, match="rank 1 of 2 has no sequence to pad with"):
        order(3, 0, world_size=2, uneven="pad").pieces(1, 0)


def test_a_rank_without_a_rest_is_padded_with_its_own_shards() -> None:
    made = order(3, 2, world_size=2, uneven="pad", rests={4: {0: 1}})
    assert made.pieces(0, 4) == [Piece(0, 1, 3)]
    assert made.pieces(1, 4) == [Piece(1, 0, 2)]
    assert made.own(1, 4) == []
    assert made.pieces(1, 5) == [Piece(1, 0, 2), Piece(1, 0, 1)]


def test_a_walk_counts_sequences_over_pieces() -> None:
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


def test_the_shuffle_of_a_seed_never_changes() -> None:
    """A checkpoint continues under later versions."""
    made = order(*[6] * 6, seed=11)
    sequences = made.sequences(2, 4)
    assert sequences is not None
    assert (made.shards(0, 4), sequences.tolist()) == ([5, 1, 4, 2, 0, 3], [3, 2, 5, 0, 4, 1])

"""Compiled augmentation of ARC tasks, against numpy and sha256."""

import numpy as np
import pytest

from gristmill.puzzles.domains.arc_grid import Augmentation, flat
from gristmill.puzzles.domains.arc_kernels import canonical_pair, kept_draws
from gristmill.puzzles.domains.source_key import source_key
from tests.puzzles import arc_oracle, arc_tasks

NUMBERS = np.array([[[k % 10 for k in range(12)]]], np.uint8).reshape(3, 4)


def pairs_of(seed: int, count: int, colours: int, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    made = [arc_tasks.pair(seed + k, colours, most) for k in range(count)]
    return [(np.array(p["input"], np.uint8), np.array(p["output"], np.uint8)) for p in made]


@pytest.mark.parametrize(
    ("count", "colours", "most"), [(3, 9, 5), (2, 2, 3), (1, 2, 1), (4, 2, 1), (2, 3, 2), (3, 1, 3)]
)
def test_the_kept_draws_are_those_that_sha256_keeps(count: int, colours: int, most: int) -> None:
    # Small grids of few colours repeat, so that most draws are duplicates.
    for seed in range(2):
        pairs = pairs_of(1000 * seed + 7, count, colours, most)
        expected = arc_oracle.group(5, f"t{seed}", pairs, 60)
        key = np.uint64(source_key(5, "arc", f"t{seed}"))
        numbers, symmetries, colour_maps = kept_draws(key, 60, 300, *flat(pairs))
        assert numbers.tolist() == [number for number, _, _ in expected]
        ids = [
            f"t{seed}_t{symmetry}_{''.join(map(str, table))}"
            for symmetry, table in zip(symmetries.tolist(), colour_maps.tolist(), strict=True)
        ]
        assert ids[1:] == [name for _, name, _ in expected[1:]]


def test_pairs_that_change_places_make_no_new_puzzle() -> None:
    one, two = np.array([[1, 0]], np.uint8), np.array([[2, 0]], np.uint8)
    pairs = [(one, one), (two, two)]
    key = np.uint64(source_key(1, "arc", "x"))
    numbers, _, _ = kept_draws(key, 500, 2500, *flat(pairs))
    # Four frames, and 36 sets of two colours; equal by the order of pairs alone.
    assert len(numbers) == 4 * 36
    assert len(arc_oracle.group(1, "x", pairs, 500)) == 4 * 36


def test_the_canonical_form_is_the_same_for_all_augmentations_of_a_pair() -> None:
    before, after = NUMBERS, NUMBERS[:2] * 0 + 7
    expected = canonical_pair(*flat([(before, after)]), 0).tobytes()
    for number in range(1, 40):
        symmetry, colours = arc_oracle.drawn(9, "a", number)
        change = Augmentation(symmetry, "".join(map(str, colours)))
        other = [(before, before), (change.apply(before), change.apply(after))]
        assert canonical_pair(*flat(other), 1).tobytes() == expected
        assert canonical_pair(*flat(other), 0).tobytes() != expected


def test_the_canonical_form_tells_other_pairs_apart() -> None:
    def form(before: list[list[int]], after: list[list[int]]) -> bytes:
        pair = np.array(before, np.uint8), np.array(after, np.uint8)
        return bytes(canonical_pair(*flat([pair]), 0))

    # Colour 0 is itself; the input and output change together; shapes count.
    assert form([[0]], [[0]]) != form([[1]], [[1]])
    assert form([[1]], [[1]]) == form([[5]], [[5]])
    assert form([[1]], [[1]]) != form([[1]], [[2]])
    assert form([[1, 0]], [[1, 0]]) != form([[1, 0]], [[0, 1]])
    assert form([[1, 0]], [[1, 0]]) == form([[0], [4]], [[0], [4]])
    assert form([[1, 1]], [[1]]) != form([[1]], [[1, 1]])

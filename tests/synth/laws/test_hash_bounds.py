"""The bounds of the synth_id hashes of both splits."""

import pytest

from gristmill.synth.format import holdout
from gristmill.synth.laws.hash_bounds import HashBounds

IDS = sorted((f"id_{number}" for number in range(50)), key=holdout.value)


@pytest.mark.parametrize("valid", [0, 1, 20, 50])
def test_a_threshold_divides_the_lowest_hashes_from_the_others(valid: int) -> None:
    bounds = HashBounds()
    bounds.add("valid", IDS[:valid])
    bounds.add("train", iter(IDS[valid:]))
    assert bounds.divide()


def test_an_id_in_both_splits_cannot_be_divided() -> None:
    bounds = HashBounds()
    bounds.add("valid", [IDS[0], IDS[20]])
    bounds.add("train", [IDS[30], IDS[20]])
    bounds.add("valid", [IDS[1]])
    bounds.add("train", [IDS[40]])
    assert not bounds.divide()


def test_only_a_fraction_between_the_bounds_divides_at_its_threshold() -> None:
    bounds = HashBounds()
    bounds.add("valid", ["memorization_82_52457"])  # 0.297650
    bounds.add("train", ["memorization_german_10_150696"])  # 0.356852
    assert [f for f in (0.2, 0.29765, 0.2977, 0.3, 0.3568, 0.357, 1) if bounds.divide_at(f)] == [
        0.2977,
        0.3,
        0.3568,
    ]


def test_the_threshold_itself_is_train() -> None:
    value = holdout.threshold(0.3)
    bounds = HashBounds()
    bounds.lowest_train = value
    assert bounds.divide_at(0.3)
    bounds.highest_valid = value
    assert not bounds.divide_at(0.3)
    assert not bounds.divide()

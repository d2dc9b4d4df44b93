"""The split rule against the values of `docs/formats/synth.md#hash-rule`."""

import pytest

from gristmill.synth.format import holdout


def test_thresholds_and_hash_values_are_those_of_the_format_page() -> None:
    assert holdout.threshold(0.1) == 1844674407370955161
    assert holdout.threshold(0.001) == 18446744073709551
    assert (holdout.threshold(0), holdout.threshold(1)) == (0, 1 << 64)
    for synth_id, fraction in (
        ("memorization_german_10_150696", 0.356852),
        ("memorization_94_6343", 0.523066),
        ("memorization_82_52457", 0.297650),
        ("synth_math_29_2664", 0.466051),
    ):
        assert holdout.value(synth_id) / 2**64 == pytest.approx(fraction, abs=1e-6)


def test_a_hash_value_equal_to_the_threshold_is_in_train() -> None:
    value = holdout.value("synth_math_29_2664")
    assert not holdout.is_valid("synth_math_29_2664", value)
    assert holdout.is_valid("synth_math_29_2664", value + 1)


def test_no_conversation_is_valid_at_0_and_every_one_is_at_1() -> None:
    ids = [f"id {number}" for number in range(50)]
    assert not any(holdout.is_valid(synth_id, holdout.threshold(0)) for synth_id in ids)
    assert all(holdout.is_valid(synth_id, holdout.threshold(1)) for synth_id in ids)


def test_the_synth_id_is_hashed_as_utf8() -> None:
    assert holdout.value("été") == 0xBC5121B7615020D8

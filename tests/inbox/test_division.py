"""Runs of files, and the split rule against the values of `docs/formats/synth.md#hash-rule`."""

from pathlib import Path

import pytest

from gristmill.inbox import division
from gristmill.inbox.division import contiguous_run


def test_thresholds_are_those_of_the_format_page_and_runs_of_files_contiguous() -> None:
    assert division.threshold(0.1) == 1844674407370955161
    assert division.threshold(0.001) == 18446744073709551
    assert (division.threshold(0), division.threshold(1)) == (0, 1 << 64)
    for synth_id, fraction in (
        ("memorization_german_10_150696", 0.356852),
        ("memorization_94_6343", 0.523066),
        ("memorization_82_52457", 0.297650),
        ("synth_math_29_2664", 0.466051),
    ):
        assert division.value(synth_id) / 2**64 == pytest.approx(fraction, abs=1e-6)
    paths = [Path(f"synth_{n:03d}.parquet") for n in range(1, 501)]
    runs = [contiguous_run(paths, shard, 4) for shard in range(4)]
    assert [(run[0].stem, run[-1].stem) for run in runs] == [
        ("synth_001", "synth_125"),
        ("synth_126", "synth_250"),
        ("synth_251", "synth_375"),
        ("synth_376", "synth_500"),
    ]
    assert [len(contiguous_run(paths[:10], shard, 4)) for shard in range(4)] == [3, 3, 2, 2]
    for shard_index in (-1, 4):
        with pytest.raises(ValueError, match="from 0 to 3"):
            contiguous_run(paths, shard_index, 4)


def test_a_value_equal_to_the_threshold_is_in_train_and_0_and_1_take_none_and_all() -> None:
    value = division.value("synth_math_29_2664")
    assert not division.is_valid("synth_math_29_2664", value)
    assert division.is_valid("synth_math_29_2664", value + 1)
    ids = [f"id {number}" for number in range(50)]
    assert not any(division.is_valid(synth_id, division.threshold(0)) for synth_id in ids)
    assert all(division.is_valid(synth_id, division.threshold(1)) for synth_id in ids)
    assert division.value("été") == 0xBC5121B7615020D8


@pytest.mark.parametrize("count", range(4, 13))
@pytest.mark.parametrize("shards", [1, 3, 4])
def test_the_runs_of_all_shards_are_the_drop_in_order(count: int, shards: int) -> None:
    paths = [Path(f"synth_{n:03d}.parquet") for n in range(count)]
    runs = [contiguous_run(paths, shard, shards) for shard in range(shards)]
    assert [path for run in runs for path in run] == paths
    sizes = [len(run) for run in runs]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1

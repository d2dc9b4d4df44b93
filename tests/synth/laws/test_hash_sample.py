"""The share of ids in each split, where conversations share an id."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import holdout
from gristmill.synth.laws.hash_sample import HashSample
from gristmill.synth.laws.kd_shard import kd_laws
from tests.synth.conversations import as_json, conversation


@pytest.mark.parametrize("answers", [1, 60])
def test_answers_of_one_prompt_have_one_id_and_one_split(
    vocabulary: Path, tmp_path: Path, write_rows: Callable[..., Path], answers: int
) -> None:
    """Three of six prompts are valid by the rule at 0.1: with 60 answers each, 180 of 360 rows."""
    ids = ["p11", "p15", "p31", "p0", "p1", "p2"]
    limit = holdout.threshold(0.1)
    rows = [
        (name, as_json(conversation(f"question {name}", f"thought {n}", "an answer")))
        for name in ids
        for n in range(answers)
    ]
    out = tmp_path / "kd"
    build_kd_shard(write_rows(rows), out, KDConfig(vocabulary, 0.1))
    assert sum(holdout.is_valid(name, limit) for name in ids) == 3
    assert list(kd_laws(out, "07", 0.1)) == []


def test_a_full_sample_keeps_the_share_of_each_split() -> None:
    limit = holdout.threshold(0.25)
    sample = HashSample(most=1000)
    for first in range(0, 20_000, 500):
        hashes = [holdout.value(f"id_{number}") for number in range(first, first + 500)] * 3
        sample.add("valid", [value for value in hashes if value < limit])
        sample.add("train", (value for value in hashes if value >= limit))
    counts = sample.counts()
    assert 400 < sum(counts.values()) <= 1000
    assert abs(counts["valid"] / sum(counts.values()) - 0.25) < 0.08


def test_equal_hashes_of_any_number_count_once() -> None:
    sample = HashSample(most=1)
    for value in (7, 7, 1 << 40 | 7, 7):
        sample.add("train", [value])
    assert sample.counts()["train"] <= 2
    sample = HashSample()
    sample.add("train", [7] * 10)
    sample.add("valid", [])
    assert sample.counts() == {"train": 1, "valid": 0}

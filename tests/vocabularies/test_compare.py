"""The sample: its share, its seed, and the error for two encodings that differ."""

import numpy as np
import pytest

from gristmill.vocabularies import proving
from gristmill.vocabularies.compare import EnginesDiffer, check_equal, sampled


def test_the_sample_has_its_share_and_does_not_depend_on_batches():
    whole = sampled("shard_00", 0, 1 << 20)
    assert 0.98 < len(whole) * proving.SHARE / (1 << 20) < 1.02
    parts = [first + sampled("shard_00", first, 1000) for first in range(0, 1 << 20, 1000)]
    together = np.concatenate(parts)
    assert together[together < 1 << 20].tolist() == whole.tolist()
    gaps = np.diff(whole)
    assert gaps.max() < 40 * proving.SHARE


def test_another_file_has_another_sample():
    first, second = (sampled(name, 0, 100_000).tolist() for name in ("a", "b"))
    assert first != second
    assert sampled("a", 5, 0).tolist() == []


@pytest.mark.parametrize(
    ("fast", "reference", "place"),
    [([1, 2, 3], [1, 9, 3], 1), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 2], 2), ([], [7], 0)],
)
def test_the_error_names_the_place_and_both_encodings(fast, reference, place):
    arrays = np.array(fast, np.int32), np.array(reference, np.int32)
    with pytest.raises(EnginesDiffer) as caught:
        check_equal("shard:7", *arrays)
    text = str(caught.value)
    assert text.startswith(f"shard:7: the engines differ at token {place}: ")
    assert f"gigatoken gives {len(fast)} tokens, there {fast[place:]}" in text
    assert f"tiktoken {len(reference)} tokens, there {reference[place:]}" in text
    check_equal("shard:7", arrays[0], arrays[0].copy())


def test_the_error_shows_few_tokens_of_long_texts_and_is_none_of_a_row():
    fast = np.arange(100_000, dtype=np.int32)
    with pytest.raises(EnginesDiffer) as caught:
        check_equal("x", fast, fast + 1)
    assert "[0, 1, 2, 3, 4, 5, 6, 7]," in str(caught.value)
    assert "[1, 2, 3, 4, 5, 6, 7, 8]." in str(caught.value)
    assert not issubclass(EnginesDiffer, ValueError)

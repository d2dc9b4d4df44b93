"""What a training job's tokenizer says is compared with the ids that documents have."""

from types import SimpleNamespace
from typing import Any

import pytest

from gristmill.synth.read.shard_files import contradiction

CURE = "give the config a tokenizer with eod = 199999 and pad = -1, as docs/synth.md shows"


def said(pad: Any = -1, **changed: Any) -> str | None:
    return contradiction(SimpleNamespace(**{"vocab_size": 201_088, "eod": 199_999} | changed), pad)


def test_the_rule_has_both_numbers_and_the_cure() -> None:
    assert said(199_999, eod=200_002) == (
        "tokenizer.eod is 200002, and the EOD of its documents (o200k_harmony) is 199999;"
        f" tokenizer.pad is 199999: {CURE}"
    )
    assert said(200_012) == (
        "tokenizer.pad is 200012, and in its documents (o200k_harmony) 200012 is <|call|>, of which"
        f" Megatron would make 0; tokenizer.eod is 199999: {CURE}"
    )
    assert said(vocab_size=200_012) == (
        "tokenizer.vocab_size is 200012, and its documents have ids up to 200012: give the config"
        " the vocabulary of o200k_harmony, padded to 201088 ids"
    )


@pytest.mark.parametrize("pad", [0, 1, 199_997, 199_999, 200_002, 200_003, 200_005, 200_008])
def test_an_id_of_documents_is_no_padding(pad: int) -> None:
    assert f"tokenizer.pad is {pad}, " in str(said(pad))


@pytest.mark.parametrize("pad", [-1, None, 199_998, 200_000, 200_018, 201_087, 201_088])
def test_an_id_that_no_document_has_may_be_padding(pad: int | None) -> None:
    assert said(pad) is None


def test_a_tokenizer_without_an_eod_is_refused_and_one_without_a_size_is_not() -> None:
    assert "tokenizer.eod is None, " in str(contradiction(SimpleNamespace(vocab_size=None), -1))
    assert said(vocab_size=None) is None
    assert said(vocab_size=200_013) is None
    assert said(vocab_size=300_000) is None

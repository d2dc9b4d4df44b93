"""One object for every tokenizer: ids, bytes, control tokens, types."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.vocabularies.pinned import GPT2, O200K, VOCABULARIES, MissingVocabulary
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer
from tests.vocabularies.places import drop


@pytest.fixture(scope="module")
def gpt2(vocabulary_root: Path) -> Tokenizer:
    return of_pinned(GPT2, drop(vocabulary_root, GPT2))


def test_a_pinned_vocabulary_is_a_tokenizer_that_travels_and_refuses_what_is_no_control_token(gpt2):
    assert (gpt2.name, gpt2.size, gpt2.eod, gpt2.bos) == ("gpt2", 50_257, 50_256, None)
    assert gpt2.dtype == np.dtype("<u2")
    (ids,) = gpt2.encode(["Hello<|endoftext|>"]).ids
    assert np.frombuffer(ids, "<i4").tolist() == [15496, 27, 91, 437, 1659, 5239, 91, 29]
    assert gpt2.encode(["a"], "reference").by_reference == {0}
    assert gpt2.token_bytes[15496] == b"Hello"
    assert gpt2.token_bytes[gpt2.eod] == b""
    assert gpt2.token_lengths[[15496, gpt2.eod]].tolist() == [5, 0]
    with pytest.raises(GristmillError, match=r"<\|im_end\|>: .* gpt2; it has <\|endoftext\|>"):
        gpt2.special_id("<|im_end|>")
    gpt2.encode(["a"])
    data = pickle.dumps(gpt2)
    assert len(data) < 1000
    assert pickle.loads(data) == gpt2
    assert hash(pickle.loads(data)) == hash(gpt2)


def test_two_bytes_hold_65536_ids_and_harmony_has_more(vocabulary_root, gpt2):
    found = of_pinned(O200K, drop(vocabulary_root, O200K))
    assert found.dtype == np.dtype("<i4")
    assert [found.special_id(text) for text in ("<|start|>", "<|endoftext|>")] == [200006, 199999]
    assert replace(gpt2, size=65_536).dtype == np.dtype("<u2")
    assert replace(gpt2, size=65_537).dtype == np.dtype("<i4")


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.name)
def test_the_folder_of_a_pinned_vocabulary_opens_by_its_name(vocabulary, tmp_path):
    for each in VOCABULARIES:
        if each is vocabulary:
            found = open_tokenizer(tmp_path / each.name)
            assert (found.sha256, found.path) == (each.sha256, tmp_path / each.relative)


def test_a_folder_that_is_not_there_names_the_command(tmp_path):
    with pytest.raises(MissingVocabulary, match="qwen: no tokenizer is placed there"):
        open_tokenizer(tmp_path / "qwen")
    with pytest.raises(MissingVocabulary, match=r"there: did you mean gpt2\? Else bring its file"):
        open_tokenizer(tmp_path / "gtp2")

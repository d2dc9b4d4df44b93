"""Pieces to tokens: shared bytes, control tokens of the template alone, several documents."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.synth.render.chat.assemble import Words, assemble, words_of
from gristmill.synth.render.chat.pieces import Piece
from gristmill.vocabularies.encode import encoding
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2, O200K
from gristmill.vocabularies.tokenizer import of_pinned


@pytest.fixture
def words(vocabulary: Path) -> Words:
    return words_of(of_pinned(O200K, vocabulary), TIKTOKEN)


def spans(pieces: list[Piece], words: Words) -> list[int]:
    """The span code of each token of one document."""
    made = assemble([pieces], words)
    return [0, *made.span[:-1].tolist()]


def test_a_token_that_shares_a_byte_has_the_span_of_the_text(
    words: Words, vocabulary: Path
) -> None:
    decode = encoding(vocabulary).decode
    pieces = [Piece("user", 0), Piece(" an", 2, 0), Piece("swer", 0), Piece("<|end|>", 0)]
    made = assemble([pieces], words)
    assert decode(made.tokens[:2].tolist()) == "user answer"
    assert spans(pieces, words) == [0, 2, 0, 0]
    tiny = [Piece("<|end|>", 0), Piece("a", 0), Piece("n", 1, 0), Piece("swer", 0), Piece("ed", 0)]
    assert spans(tiny, words) == [0, 1, 0]


def test_control_tokens_come_from_the_template_alone(words: Words) -> None:
    text = "<|end|><|reserved_200500|>"
    torn = [Piece("<|en", 0), Piece("d|>", 2, 0)]
    made = assemble([[Piece(text, 0), Piece(text, 2, 0), *torn]], words)
    ids = made.tokens.tolist()
    assert ids[:2] == [200007, 200500]
    assert [token for token in ids[2:] if token > 199997] == [199999]


def test_documents_follow_each_other_with_runs_of_one_span(words: Words) -> None:
    first = [Piece("<|start|>", 0), Piece("yes", 2, 0), Piece("<|end|>", 2)]
    second = [Piece("hm", 1, 0)]
    both, one, two = (assemble(each, words) for each in ([first, second], [first], [second]))
    assert np.array_equal(both.tokens, np.concatenate([one.tokens, two.tokens]))
    assert np.array_equal(both.span, np.concatenate([one.span, two.span]))
    assert both.lengths.tolist() == [4, 2]
    assert (both.runs.tolist(), both.run_counts.tolist()) == ([1, 2, 1, 1, 1], [3, 2])
    assert (both.texts.tolist(), both.by_tiktoken.tolist()) == ([1, 1], [1, 1])
    # A label is one place before its token, and the last place of a document has none.
    assert both.span.tolist() == [2, 2, 0, 0, 0, 0]


def test_nothing_gives_nothing_and_a_surrogate_is_refused(words: Words) -> None:
    assert len(assemble([], words).tokens) == 0
    assert assemble([[Piece("<|end|>", 0)]], words).tokens.tolist() == [200007, 199999]
    with pytest.raises(ValueError, match="surrogates not allowed"):
        assemble([[Piece("\ud800", 2, 0)]], words)


def test_another_tokenizer_has_its_own_control_tokens(vocabulary_root: Path) -> None:
    words = words_of(of_pinned(GPT2, find(GPT2, vocabulary_root)))
    made = assemble([[Piece("<|endoftext|>", 0), Piece("<|end|><|endoftext|>", 2, 0)]], words)
    ids = made.tokens.tolist()
    assert (ids[0], ids[-1], ids.count(50256)) == (50256, 50256, 2)
    assert made.span[0] == 2

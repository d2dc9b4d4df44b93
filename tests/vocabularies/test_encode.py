"""Fast encoding gives the ids of tiktoken's own o200k pattern."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from gristmill.vocabularies import encode
from gristmill.vocabularies.pinned import O200K
from tests.vocabularies.places import drop

TEXTS = st.text(
    st.sampled_from("aB\u00c9\u4e2d\u0301 7\t\r\n'sLL/.<|>\U0001f600\u02b0"), max_size=40
)


@pytest.fixture(scope="module")
def pair(vocabulary_root: Path) -> tuple[tiktoken.Encoding, tiktoken.Encoding]:
    """Our encoding, and one with the same ranks and o200k's own pattern."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
        pattern = openai_public.o200k_base()["pat_str"]
    ours = encode.encoding(drop(vocabulary_root, O200K))
    own = tiktoken.Encoding(
        "own", pat_str=pattern, mergeable_ranks=ours._mergeable_ranks, special_tokens={}
    )
    return ours, own


def _ids(texts: list[str], encoding: tiktoken.Encoding) -> list[list[int]]:
    return [
        np.frombuffer(view.cast("B"), "<i4").tolist() for view in encode.encode(texts, encoding)
    ]


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(TEXTS | st.text(max_size=20), max_size=3))
def test_ids_are_those_of_the_published_pattern(
    texts: list[str], pair: tuple[tiktoken.Encoding, tiktoken.Encoding]
) -> None:
    ours, own = pair
    assert _ids(texts, ours) == [own.encode_ordinary(text) for text in texts]


def test_the_text_of_a_control_token_is_encoded_as_text(
    pair: tuple[tiktoken.Encoding, tiktoken.Encoding],
) -> None:
    (ids,) = _ids(["<|endoftext|>"], pair[0])
    assert len(ids) > 1 and max(ids) < 199_998


def test_a_lone_surrogate_is_an_error(pair: tuple[tiktoken.Encoding, tiktoken.Encoding]) -> None:
    with pytest.raises(UnicodeEncodeError):
        encode.encode(["a\ud800"], pair[0])

"""The grammar of partition keys, at its edges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill import keys

LETTERS = "ABCxyz019_-"


@pytest.mark.parametrize(
    "key", ["d6_v1", "a", "_", "-", "2020-06", "v1.2.3", "a.b", "00", "-a", "x" * 100, "a._.b"]
)
def test_what_a_key_may_be(key):
    assert keys.refusal(key) is None
    assert keys.checked(key) == key


@pytest.mark.parametrize(
    "key",
    [
        *("", ".", "..", "...", ".a", "a.", "a..b", "a/b", "/a", "a\\b", "a b", " a", "a\n", "\n"),
        *("a\0", "a|b", "a,b", "[a]", "a*", "a?", "~", "a:b", "a...b", "ä", "é", "١", "a'", '"'),
    ],
)
def test_what_a_key_may_not_be_is_named(key):
    reason = keys.refusal(key)
    assert reason is not None
    assert repr(key) in reason
    with pytest.raises(keys.BadKey) as caught:
        keys.checked(key)
    assert str(caught.value) == reason


def test_a_key_has_at_most_a_hundred_characters():
    reason = str(keys.refusal("x" * 101))
    assert "has 101 characters" in reason
    assert len(reason) < 100


@given(st.lists(st.text(LETTERS, min_size=1, max_size=8), min_size=1, max_size=6))
def test_words_joined_by_single_dots_are_keys(words):
    assert keys.refusal(".".join(words)) is None


@given(st.text(max_size=30))
def test_a_key_is_one_plain_name_whatever_is_tried(text):
    if keys.refusal(text) is None:
        assert text.isascii()
        assert text not in (".", "..", "")
        assert not set(text) & set("/\\ \t\r\n\0|,[]*?:~'\"")
        assert ".." not in text

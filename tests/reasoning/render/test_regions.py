"""Control pairs: what an expression does step by step, and what each variant changes."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.contract import GristmillError
from gristmill.reasoning.render import regions
from gristmill.reasoning.render.regions import Projection, byte_offsets
from gristmill.reasoning.render.steps import steps_of
from gristmill.reasoning.render.text import rendered
from gristmill.vocabularies.encode import encoder
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import GPT2, find
from gristmill.vocabularies.tokenizer import of_pinned
from tests.reasoning.normalized_files import real_records


def _texts(text: str, ranges: list[regions.Range]) -> list[str]:
    return [text[start:end] for start, end in ranges]


def _marked(text: str) -> tuple[list[str], list[int]]:
    found = regions.marked(text, 0, len(text))
    return _texts(text, found.ranges), found.numbers


def test_steps_go_from_marker_to_marker_or_are_lines_and_sentences():
    text = "Let us see.\nStep 1: add\nmore\n\n step 2) take \nSTEP 3. done \n"
    assert _marked(text) == (["Step 1: add\nmore", "step 2) take", "STEP 3. done"], [1, 2, 3])
    assert _marked("1. add\n2) take") == (["1. add", "2) take"], [1, 2])
    assert _marked("1. add") == ([], [])
    assert _marked("1.5 add\n2.5 take") == ([], [])
    assert _marked("Step 1: a\n1. b\n2. c") == (["Step 1: a\n1. b\n2. c"], [1])
    text = "  a \n\n \t\nb\n"
    assert _texts(text, regions.lines(text, 0, len(text))) == ["a", "b"]
    text = " a\nb \n \n\t\nc\n\n"
    assert _texts(text, regions.paragraphs(text, 0, len(text))) == ["a\nb", "c"]
    text = 'It is 3.5 m. "Yes!" Is it? (No.)\nEnd'
    expected = ["It is 3.5 m.", '"Yes!"', "Is it?", "(No.)", "End"]
    assert _texts(text, regions.sentences(text, 0, len(text))) == expected
    text = "a. b\n\nc. d\n\ne. f"
    assert regions.sentences(text, 6, 10) == [(6, 8), (9, 10)]
    assert regions.paragraphs(text, 6, 10) == [(6, 10)]
    assert regions.lines(text, 6, 10) == [(6, 10)]


@pytest.mark.parametrize(
    "marker",
    ["Step 1:", "Step 1.", "Step 1)", "Step 1 -", "**Step 1:**", "## Step 1:", "*step 1*:"],
)
def test_markers_in_their_forms(marker):
    assert _marked(f"{marker} go") == ([f"{marker} go"], [1])


@pytest.mark.parametrize(
    "text",
    ["Step one: go", "Step 1 go", "a Step 1: go", "Steps 1: go", "Step 12345: go", "Step1: go"],
)
def test_what_is_no_marker(text):
    assert _marked(text) == ([], [])


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([1, 2, 3], True), ([1], True), ([2, 3], False), ([1, 3], False), ([1, 1], False)],
)
def test_consecutive_numbers_begin_at_one(numbers, expected):
    assert regions.Marked([], numbers).consecutive is expected


_CUTS = (regions.lines, regions.paragraphs, regions.sentences)


@given(st.text(alphabet="a.\n !\t\u2003é1)", max_size=40), st.data())
def test_ranges_are_ascending_trimmed_and_lose_nothing(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    for cut in _CUTS:
        ranges = cut(text, start, end)
        bounds = [start, *(place for pair in ranges for place in pair), end]
        assert bounds == sorted(bounds)
        assert all(text[a:b] == text[a:b].strip() != "" for a, b in ranges)
        kept = "".join(_texts(text, ranges))
        assert "".join(kept.split()) == "".join(text[start:end].split())


@pytest.mark.parametrize(
    "text", [" " * 50_000, "\n " * 30_000, "#" * 50_000, ".'" * 30_000, "1. " * 20_000]
)
def test_no_text_takes_more_than_linear_time(text):
    began = time.thread_time()
    regions.marked(text, 0, len(text))
    for cut in _CUTS:
        cut(text, 0, len(text))
    assert time.thread_time() - began < 5  # quadratic time is minutes


def _encoded(texts: list[str], vocabulary: Path) -> tuple[np.ndarray, list[int]]:
    ids = encoder(GPT2, vocabulary).encode(texts).ids
    return np.frombuffer(b"".join(ids), np.int32), [each.nbytes // 4 for each in ids]


def _lengths(vocabulary: Path) -> np.ndarray:
    return of_pinned(GPT2, vocabulary).token_lengths


def _projection(texts: list[str], vocabulary: Path) -> Projection:
    return Projection(texts, *_encoded(texts, vocabulary), _lengths(vocabulary))


def _slow(text: str, start: int, end: int, pieces: list[bytes]) -> tuple[int, int]:
    """The tokens that share a byte with some characters, one byte after the other."""
    first, last = len(text[:start].encode()), len(text[:end].encode())
    owners = [token for token, piece in enumerate(pieces) for _ in piece]
    owned = sorted(set(owners[first:last]))
    assert owned == list(range(owned[0], owned[-1] + 1))
    return owned[0], owned[-1] + 1


def test_lengths_are_the_bytes_of_tokens_and_each_text_has_its_own(vocabulary, vocabulary_root):
    gpt2 = tiktoken_encoding(GPT2, find(GPT2, vocabulary_root))
    table = _lengths(vocabulary)
    expected = [len(gpt2.decode_single_token_bytes(token)) for token in range(50_256)]
    assert table.tolist() == [*expected, 0]
    texts = ["one two", "", "drei é vier", "five six"]
    made = _projection(texts, vocabulary)
    alone = [
        _projection([text], vocabulary).tokens(*np.array([[0], [0], [len(text)]])).tolist()[0]
        for text in texts
        if text
    ]
    where = np.array([0, 2, 3])
    ends = np.array([len(texts[place]) for place in where])
    assert made.tokens(where, np.zeros(3, np.int64), ends).tolist() == alone


def test_byte_offsets_are_those_of_utf_8():
    assert byte_offsets("abc") is None
    offsets = byte_offsets("aé€😀z")
    assert offsets is not None and offsets.tolist() == [0, 1, 3, 6, 10, 11]
    for last in (0x7F, 0x7FF, 0xFFFF):
        text = chr(last) + chr(last + 1) + "\U0010ffff"
        offsets = byte_offsets(text)
        expected = [len(text[:place].encode()) for place in range(4)]
        assert offsets is not None and offsets.tolist() == expected


def test_characters_have_all_tokens_and_other_texts_are_refused(vocabulary):
    text = "Don\u2019t"
    ids, counts = _encoded([text], vocabulary)
    assert counts == [4] and _lengths(vocabulary)[ids].tolist() == [3, 2, 1, 1]
    made = Projection([text], ids, counts, _lengths(vocabulary))
    ranges = made.tokens(np.array([0, 0, 0]), np.array([3, 0, 4]), np.array([4, 3, 5]))
    assert ranges.tolist() == [[1, 3], [0, 1], [3, 4]]
    assert made.characters(0, 1, 2) == (3, 4)
    assert made.characters(0, 2, 4) == (3, 5)
    made = _projection(["one two three"], vocabulary)
    assert made.tokens(np.array([0]), np.array([4]), np.array([7])).tolist() == [[1, 2]]
    ids, counts = _encoded(["one two"], vocabulary)
    for texts, of in ((["one tw"], counts), (["one", " two"], [2, 0]), (["one two"], [1])):
        with pytest.raises(GristmillError, match="not as many bytes"):
            Projection(texts, ids, of, _lengths(vocabulary))
    eos = np.array([50_256], np.int32)  # it has no bytes
    with pytest.raises(GristmillError, match="not as many bytes"):
        Projection(["one two"], np.concatenate((ids, eos)), counts, _lengths(vocabulary))


_TEXT = st.text(
    st.one_of(st.sampled_from("ab \n’é€😀'\u0301<|>"), st.characters(exclude_categories=["Cs"])),
    min_size=1,
    max_size=30,
)


@settings(deadline=None)
@given(st.lists(_TEXT, min_size=1, max_size=4), st.data())
def test_ranges_are_those_of_a_slow_projection(vocabulary, vocabulary_root, texts, data):
    ids, counts = _encoded(texts, vocabulary)
    made = Projection(texts, ids, counts, _lengths(vocabulary))
    place = data.draw(st.integers(0, len(texts) - 1))
    text = texts[place]
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    first = sum(counts[:place])
    decode = encoder(GPT2, vocabulary).reference.token_bytes().__getitem__
    pieces = [decode(int(token)) for token in ids[first : first + counts[place]]]
    found = made.tokens(np.array([place]), np.array([start]), np.array([end])).tolist()[0]
    assert tuple(found) == _slow(text, start, end, pieces)
    covered = made.characters(place, *found)
    assert covered[0] <= start and covered[1] >= end
    again = made.tokens(np.array([place]), *np.array(covered).reshape(2, 1)).tolist()[0]
    assert set(range(*found)) <= set(range(*again))


def test_token_by_token_decoding_drifts_on_gsm8k_and_this_does_not(vocabulary):
    records = real_records("gsm8k", "test")
    texts = [rendered(record) for record in records]
    ids, counts = _encoded([each.text for each in texts], vocabulary)
    decode = encoder(GPT2, vocabulary).reference.token_bytes().__getitem__
    drifted, first = 0, 0
    for text, count in zip(texts, counts, strict=True):
        pieces = [decode(int(token)) for token in ids[first : first + count]]
        drifted += sum(len(piece.decode(errors="replace")) for piece in pieces) != len(text.text)
        first += count
    assert drifted == 79
    made = Projection([each.text for each in texts], ids, counts, _lengths(vocabulary))
    pairs = [
        (place, *pair)
        for place, (record, text) in enumerate(zip(records, texts, strict=True))
        for pair in steps_of(record, text, "gsm8k").ranges
    ]
    found = made.tokens(*np.array(pairs).T)
    for (place, start, end), (low, high) in zip(pairs, found.tolist(), strict=True):
        covered = made.characters(place, low, high)
        # What a token has beyond the step is white space, as in " The" and ".\n".
        whole = texts[place].text
        assert whole[covered[0] : covered[1]].strip() == whole[start:end]

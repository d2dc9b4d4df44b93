"""Each engine, and both behind one encoder, give the ids of tiktoken's own patterns."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tiktoken
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from gristmill.contract import BadInput
from gristmill.vocabularies import encode, engine
from gristmill.vocabularies.encode import (
    LONGEST_RUN,
    WHITE_SPACE,
    Encoder,
    EnginesDiffer,
    check_equal,
    sampled,
)
from gristmill.vocabularies.engine import AUTO, ENGINES, TIKTOKEN, Gigatoken
from gristmill.vocabularies.pinned import GPT2, O200K, VOCABULARIES, MissingVocabulary, Vocabulary
from gristmill.vocabularies.tokenizer import of_pinned
from tests import budget
from tests.vocabularies import random_texts
from tests.vocabularies.places import drop

UNPROVEN = "\u088f\U00010940\U000323b0"
TEXTS = st.text(
    st.sampled_from(
        "aB\u00c9\u4e2d\u0301 7\t\r\n'sLL/.<|>\U0001f600\u02b0\u0130\u017f\x1c\x85\u3000" + UNPROVEN
    ),
    max_size=40,
)
CONTROL = "<|endoftext|><|start|><|return|><|endofprompt|><|fim_prefix|><|reserved_200000|>"


@pytest.fixture(scope="module", params=VOCABULARIES, ids=lambda each: each.name)
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return request.param


@pytest.fixture(scope="module")
def path(vocabulary: Vocabulary, vocabulary_root: Path) -> Path:
    return drop(vocabulary_root, vocabulary)


@pytest.fixture(scope="module")
def own(vocabulary: Vocabulary, path: Path) -> tiktoken.Encoding:
    """The same ranks with the pattern that tiktoken ships."""
    ranks = engine.tiktoken_encoding(vocabulary, path)._mergeable_ranks
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
        shipped = openai_public.o200k_base if vocabulary == O200K else openai_public.r50k_base
        pattern = shipped()["pat_str"]
    return tiktoken.Encoding("own", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def ids(encoder: Encoder, texts: Sequence[str]) -> list[list[int]]:
    return [np.frombuffer(view, "<i4").tolist() for view in encoder.encode(texts).ids]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(TEXTS | st.text(max_size=20), max_size=3))
@example(texts=[CONTROL, "\u0130'\u017f'LLe", "", UNPROVEN])
def test_both_engines_give_the_ids_of_the_published_pattern(vocabulary, path, own, texts):
    expected = [own.encode_ordinary(text) for text in texts]
    for name in ENGINES:
        assert ids(encode.encoder(vocabulary, path, name), texts) == expected


def test_a_text_with_an_unproven_character_goes_to_tiktoken(vocabulary, path):
    auto = encode.encoder(vocabulary, path)
    assert auto.why_reference_alone is None
    first, last = engine.ranges(engine.UNPROVEN[vocabulary.name])[-1]
    for code in (engine.ranges(engine.UNPROVEN[vocabulary.name])[0][0], first, last):
        assert auto.encode(["ab", f"\u00e9{chr(code)}", "\u4e2d", ""]).by_reference == {1}
    for code in (first - 1, last + 1):
        assert auto.encode([f"\u00e9{chr(code)}"]).by_reference == frozenset()
    alone = encode.encoder(vocabulary, path, TIKTOKEN)
    assert alone.encode(["ab", "\u4e2d"]).by_reference == {0, 1}
    assert alone.why_reference_alone == "the setting says so"


@pytest.mark.parametrize("text", ["a\ud800", "\ud800\udc00", "\u4e2d\udfff\ud800" + "x" * 10])
def test_a_lone_surrogate_is_refused_with_the_text_of_python(vocabulary, path, text):
    with pytest.raises(UnicodeEncodeError) as expected:
        text.encode()
    for name in ENGINES:
        with pytest.raises(UnicodeEncodeError) as caught:
            encode.encoder(vocabulary, path, name).encode(["fine", text])
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("before", [0, 1, 99_999, 100_000, 150_000])
@pytest.mark.parametrize("white", [" ", "\n", "\u3000", " \n", "\x85\t"])
def test_a_run_of_white_space_is_refused_beyond_the_limit_alone(vocabulary, path, white, before):
    run = (white * LONGEST_RUN)[:LONGEST_RUN]
    for name in ENGINES:
        encoder = encode.encoder(vocabulary, path, name)
        for after in ("", "x" * 50):
            with pytest.raises(ValueError, match="more than 100000 white space characters"):
                encoder.encode(["x" * before + run + white[0] + after])
    text = "x" * before + run + "x" + run
    reference, auto = (encode.encoder(vocabulary, path, name) for name in (TIKTOKEN, AUTO))
    assert ids(auto, [text]) == ids(reference, [text])


@settings(deadline=None)
@given(text=st.text(st.sampled_from("a\u00e9 \n\u3000\x1c"), max_size=60))
def test_a_run_is_found_wherever_it_begins(text):
    """With a limit of 5 in place of 100,000."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(encode, "LONGEST_RUN", 5)
        try:
            encode._refuse_long_run(text)
            is_refused = False
        except ValueError:
            is_refused = True
    assert is_refused == bool(re.search(f"[{WHITE_SPACE}]{{6}}", text))


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(st.text(st.characters() | st.characters(categories=["Cs"])), max_size=4))
def test_both_engines_refuse_the_same_texts_with_the_same_words(vocabulary, path, texts):
    answers: list[object] = []
    for name in ENGINES:
        try:
            answers.append(ids(encode.encoder(vocabulary, path, name), texts))
        except ValueError as error:
            answers.append((type(error), str(error)))
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_a_million_random_texts_have_the_ids_of_tiktoken(vocabulary, path, own):
    encoder = encode.encoder(vocabulary, path)
    count = budget.count(1_000_000, 2_500)
    dice = budget.dice(f"random texts {vocabulary.name}")
    batch: list[str] = []
    for number, text in enumerate(random_texts.texts(dice, count), start=1):
        batch.append(text)
        if len(batch) == 500 or number == count:
            answers = zip(batch, ids(encoder, batch), strict=True)
            wrong = [each for each, found in answers if found != own.encode_ordinary(each)]
            assert not wrong
            batch = []


@pytest.mark.slow
def test_long_runs_have_the_ids_of_tiktoken(vocabulary, path, own):
    encoder = encode.encoder(vocabulary, path)
    runs = list(random_texts.long_runs())
    for text in budget.some(runs, each=0.5):
        assert ids(encoder, [text]) == [own.encode_ordinary(text)], text[:20]
    with pytest.raises(ValueError, match="more than 100000"):
        encoder.encode([" " * 1_000_000])


def test_white_space_is_that_of_the_patterns_and_an_error_shows_few_tokens():
    assert set(WHITE_SPACE) == {c for c in map(chr, range(0x110000)) if c.isspace()} - set(
        "\x1c\x1d\x1e\x1f"
    )
    fast = np.arange(100_000, dtype=np.int32)
    with pytest.raises(EnginesDiffer) as caught:
        check_equal("x", fast, fast + 1)
    assert "[0, 1, 2, 3, 4, 5, 6, 7]," in str(caught.value)
    assert "[1, 2, 3, 4, 5, 6, 7, 8]." in str(caught.value)
    assert not issubclass(EnginesDiffer, ValueError)


class PanicException(BaseException):
    """As pyo3's, which cannot be imported."""


@pytest.mark.slow
def test_a_panic_of_the_fast_engine_leaves_the_answer_to_tiktoken(vocabulary, path, monkeypatch):
    monkeypatch.setattr(encode, "_BEFORE_FAST", 0)
    encoder = Encoder(of_pinned(vocabulary, path))
    expected = ids(encoder, ["one", "two", "three"])
    fast = Gigatoken.encoder
    for error in (PanicException("boom"), TypeError("boom")):

        def failing(self: Gigatoken, characters: int, error: BaseException = error) -> object:
            encode = fast(self, characters)

            def on_two(text: str) -> object:
                if text == "two":
                    raise error
                return encode(text)

            return on_two

        monkeypatch.setattr(Gigatoken, "encoder", failing)
        assert ids(encoder, ["one", "two", "three"]) == expected
        assert encoder.encode(["one", "two"]).by_reference == {1}


def test_the_fast_engine_is_loaded_after_as_many_characters_as_its_load_costs(vocabulary, path):
    encoder = Encoder(of_pinned(vocabulary, path))
    text = "a few words " * vocabulary.size
    for _ in range(2):
        assert "fast" not in encoder.__dict__
        first = encoder.encode(["one", text, chr(0x323B0)])
        assert first.by_reference == {2}
    assert "fast" in encoder.__dict__
    again = encoder.encode(["one", text, chr(0x323B0)])
    assert (list(map(bytes, again.ids)), again.by_reference) == (
        list(map(bytes, first.ids)),
        first.by_reference,
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupt_leaves_the_encoder_as_it_is(path, vocabulary, monkeypatch, error):
    def interrupted(text: str) -> object:
        raise error

    monkeypatch.setattr(encode, "_BEFORE_FAST", 0)
    monkeypatch.setattr(Gigatoken, "encoder", lambda self, characters: interrupted)
    with pytest.raises(error):
        encode.encoder(vocabulary, path).encode(["a"])


def test_a_panic_of_tiktoken_is_an_ordinary_error(vocabulary, path, monkeypatch):
    def panics(*_: object, **__: object) -> object:
        raise PanicException("deep inside")

    monkeypatch.setattr(tiktoken.Encoding, "encode_to_numpy", panics)
    with pytest.raises(ValueError, match="tiktoken gave up: deep inside"):
        encode.encoder(vocabulary, path, TIKTOKEN).encode(["a"])


def test_an_encoder_is_loaded_once_a_process_and_an_unknown_engine_is_refused(vocabulary, path):
    assert encode.encoder(vocabulary, path) is encode.encoder(vocabulary, path)
    assert encode.encoder(vocabulary, path) is not encode.encoder(vocabulary, path, TIKTOKEN)
    with pytest.raises(ValueError, match="'fast' is none of auto, tiktoken"):
        encode.encoder(vocabulary, path, "fast")


def test_a_missing_or_another_vocabulary_is_refused(tmp_path, vocabulary):
    other = tmp_path / "other"
    other.write_bytes(b"IQ== 0\n")
    for name in ENGINES:
        with pytest.raises(MissingVocabulary, match="run `gristmill tokenizers`"):
            encode.encoder(vocabulary, tmp_path / "absent", name).encode(["a"])
        with pytest.raises(BadInput, match="sha256"):
            encode.encoder(vocabulary, other, name).encode(["a"])
    with pytest.raises(MissingVocabulary, match="run `gristmill tokenizers`"):
        encode.find_encoder(vocabulary, tmp_path)


def test_the_vocabularies_have_their_own_ids(vocabulary_root):
    texts = ["Hello world"]
    assert ids(encode.find_encoder(GPT2, vocabulary_root), texts) == [[15496, 995]]
    assert ids(encode.find_encoder(O200K, vocabulary_root), texts) == [[13225, 2375]]


def test_the_sample_has_its_share_at_any_batches_and_is_another_of_another_file():
    whole = sampled("shard_00", 0, 1 << 20)
    assert 0.98 < len(whole) * encode.SHARE / (1 << 20) < 1.02
    parts = [first + sampled("shard_00", first, 1000) for first in range(0, 1 << 20, 1000)]
    together = np.concatenate(parts)
    assert together[together < 1 << 20].tolist() == whole.tolist()
    gaps = np.diff(whole)
    assert gaps.max() < 40 * encode.SHARE
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

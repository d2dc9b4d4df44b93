"""Pieces to tokens: shared bytes, control tokens of the template alone, several documents."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import normalizers

from gristmill.contract import GristmillError
from gristmill.synth.render.assemble import (
    Piece,
    Turn,
    Words,
    assemble,
    by_turns,
    chatgpt_plain,
    chatml,
    turns_of,
    words_of,
)
from gristmill.vocabularies.encode import encoding
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import GPT2, O200K, Proof, find, read_declared
from gristmill.vocabularies.placing import place_tokenizer, put
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer
from tests.vocabularies.test_placing import EOD, in_this_process, trained


@pytest.fixture
def words(vocabulary: Path) -> Words:
    return words_of(of_pinned(O200K, vocabulary), TIKTOKEN)


def spans(pieces: list[Piece], words: Words) -> list[int]:
    """The span code of each token of one document."""
    made = assemble([pieces], words)
    return [0, *made.span[:-1].tolist()]


def test_a_token_that_shares_a_byte_has_the_span_of_the_text(words, vocabulary):
    decode = encoding(vocabulary).decode
    pieces = [Piece("user", 0), Piece(" an", 2, 0), Piece("swer", 0), Piece("<|end|>", 0)]
    made = assemble([pieces], words)
    assert decode(made.tokens[:2].tolist()) == "user answer"
    assert spans(pieces, words) == [0, 2, 0, 0]
    tiny = [Piece("<|end|>", 0), Piece("a", 0), Piece("n", 1, 0), Piece("swer", 0), Piece("ed", 0)]
    assert spans(tiny, words) == [0, 1, 0]


def test_documents_follow_with_runs_of_one_span_and_control_tokens_of_the_template(words):
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
    text = "<|end|><|reserved_200500|>"
    torn = [Piece("<|en", 0), Piece("d|>", 2, 0)]
    made = assemble([[Piece(text, 0), Piece(text, 2, 0), *torn]], words)
    ids = made.tokens.tolist()
    assert ids[:2] == [200007, 200500]
    assert [token for token in ids[2:] if token > 199997] == [199999]
    assert len(assemble([], words).tokens) == 0
    assert assemble([[Piece("<|end|>", 0)]], words).tokens.tolist() == [200007, 199999]
    with pytest.raises(ValueError, match="surrogates not allowed"):
        assemble([[Piece("\ud800", 2, 0)]], words)


def test_another_tokenizer_has_its_own_control_tokens(vocabulary_root):
    words = words_of(of_pinned(GPT2, find(GPT2, vocabulary_root)))
    made = assemble([[Piece("<|endoftext|>", 0), Piece("<|end|><|endoftext|>", 2, 0)]], words)
    ids = made.tokens.tolist()
    assert (ids[0], ids[-1], ids.count(50256)) == (50256, 50256, 2)
    assert made.span[0] == 2


@pytest.fixture
def composing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tokenizer:
    """A placed tokenizer whose file has the normaliser NFC."""
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    monkeypatch.setattr("gristmill.vocabularies.placing.prove", lambda _: Proof("not compared"))
    source = trained(tmp_path / "tokenizer.json", normalizers.NFC())
    drop = put(source, tmp_path, name="nfc", eod=EOD).parent
    place_tokenizer(drop, read_declared(drop), tmp_path / "out")
    return open_tokenizer(tmp_path / "out/nfc")


@pytest.mark.slow
def test_a_tokenizer_with_nfc_takes_the_texts_that_nfc_leaves(composing):
    assert composing.no_offsets
    words = words_of(composing)
    text = "d\u00e9j\u00e0 vu, \u4f60\u597d"
    made = assemble([[Piece("Q ", 0), Piece(text, 2, 0), Piece(EOD, 2)]], words)
    whole = composing.encode([f"Q {text}"]).ids[0]
    assert made.tokens.tolist()[:-2] == np.frombuffer(whole, np.int32).tolist()
    assert made.tokens.tolist()[-2:] == [composing.eod] * 2
    labelled = made.tokens[1:][made.span[:-1] == 2].tolist()  # a label is before its token
    assert text.encode() in b"".join(composing.token_bytes[token] for token in labelled)
    # One text grows by as many bytes as the other one shrinks.
    for changed in ("de\u0301ja", "\u0958 and e\u0301"):
        with pytest.raises(ValueError, match="another form of Unicode"):
            assemble([[Piece(text, 2, 0)], [Piece(changed, 2, 0)]], words)


def test_a_tokenizer_that_changes_texts_otherwise_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.vocabularies.placing.child.run", in_this_process)
    monkeypatch.setattr("gristmill.vocabularies.placing.prove", lambda _: Proof("not compared"))
    rules = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    drop = put(trained(tmp_path / "t.json", rules), tmp_path, name="lower", eod=EOD).parent
    place_tokenizer(drop, read_declared(drop), tmp_path / "out")
    with pytest.raises(GristmillError, match="spans of its tokens are not known"):
        words_of(open_tokenizer(tmp_path / "out/lower"))


MESSAGES = [
    {"role": "system", "content": "be"},
    {"role": "user", "content": " hi "},
    {"role": "assistant", "content": "hm", "channel": "analysis"},
    {"role": "assistant", "content": "yes", "channel": "final"},
    {"role": "user", "content": "so"},
    {"role": "assistant", "content": "no", "channel": "final"},
]


def spans_of(pieces: list[tuple[str, int, int]]) -> list[tuple[str, int]]:
    """Texts that follow each other with one span, together."""
    found: list[tuple[str, int]] = []
    for text, span, _ in pieces:
        if found and found[-1][1] == span:
            found[-1] = found[-1][0] + text, span
        else:
            found.append((text, span))
    return found


def test_turns_hold_a_thought_with_its_answer_and_chatml_trains_on_answers() -> None:
    assert turns_of(MESSAGES, "001200") == [
        Turn("system", "be", 0),
        Turn("user", " hi ", 0),
        Turn("assistant", "yes", 2, "hm", 1),
        Turn("user", "so", 0),
        Turn("assistant", "no", 0),
    ]
    assert spans_of(chatml(turns_of(MESSAGES, "001202"))) == [
        (
            "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\n hi <|im_end|>\n"
            "<|im_start|>assistant\n",
            0,
        ),
        ("<think>\nhm\n</think>\n\n", 1),
        ("yes<|im_end|>", 2),
        ("\n<|im_start|>user\nso<|im_end|>\n<|im_start|>assistant\n", 0),
        ("no<|im_end|>", 2),
        ("\n", 0),
    ]
    turns = turns_of(MESSAGES, "001202")
    first, second = by_turns(turns)
    assert first == turns[:3]
    assert [turn.span for turn in second] == [0, 0, 0, 0, 2]
    assert second[2] == Turn("assistant", "yes", 0, "hm", 0)
    assert list(by_turns(turns_of(MESSAGES, "000000"))) == []


def test_the_plain_template_begins_with_its_system_message_and_strips_texts() -> None:
    turns = turns_of(MESSAGES, "001202")
    assert spans_of(chatgpt_plain(turns)) == [
        (
            "<|start|>system<|message|>be<|end|><|start|>user<|message|>hi<|end|><|start|>assistant",
            0,
        ),
        ("<|channel|>analysis<|message|>hm<|end|>", 1),
        ("<|start|>assistant<|channel|>final<|message|>yes<|end|>", 2),
        ("<|start|>user<|message|>so<|end|><|start|>assistant", 0),
        ("<|channel|>final<|message|>no<|return|>", 2),
    ]
    begin = chatgpt_plain(turns[1:])[0].text
    assert begin == (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\n\nReasoning: high\n\n# Valid channels: analysis, commentary, "
        "final. Channel must be included for every message.<|end|>"
    )

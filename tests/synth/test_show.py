"""Shown tokens: their texts, spans and masks; the picture of a document."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from gristmill import markdown
from gristmill.browse.opening import open_table
from gristmill.browse.table import Token
from gristmill.contract import BadInput, GristmillError
from gristmill.synth import show
from gristmill.synth.format import megatron
from gristmill.synth.show import Message
from gristmill.untrusted import child
from gristmill.vocabularies import encode
from tests.synth.conversations import as_json, conversation, plain
from tests.synth.damage import set_value

HI = as_json(conversation("hi you\n", "<|end|> \x00", "ok 😀"))
SHOWN = """\
<|start|>user<|message|>hi·you⏎<|end|>
<|start|>assistant<|channel|>analysis<|message|><|end|>·‹U+0000›<|end|>
<|start|>assistant<|channel|>final<|message|>ok·😀<|return|>
<|endoftext|>
"""


def test_tokens_have_text_span_and_mask_of_the_datasets(write_rows, kd_build, vocabulary, tmp_path):
    shard = write_rows([("a", HI)])
    kd_build(shard, "out", 0.0)
    shown = show.document(tmp_path / "out", "07", "train", 0, vocabulary)
    assert [message.label for message in shown] == ["user", "analysis", "final", "end"]
    assert [token.text for token in shown[0].tokens] == [
        "<|start|>", "user", "<|message|>", "hi", "·you", "⏎", "<|end|>\n",
    ]  # fmt: skip
    for message, span in zip(shown, ("prompt", "reasoning", "final", "prompt"), strict=True):
        assert {token.span for token in message.tokens} == {span}
        assert {token.counts for token in message.tokens} == {span != "prompt"}
    assert plain(shown).replace("‹😀›₂", "😀") == SHOWN
    values = {"messages_json": HI, "synth_id": "a"}
    assert show.harmony_row(shard, 0, values, vocabulary) == shown


@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [("tokens", "<i4", -1), ("tokens", "<i4", 201_088), ("lossmask", "u1", 2), ("span", "u1", 3)],
)
def test_a_damaged_document_is_not_shown(kd_copy, vocabulary, name, dtype, value):
    set_value(kd_copy / f"train/shard_00_{name}.bin", dtype, 3, value)
    with pytest.raises(BadInput, match=rf"shard_00_{name}\.bin: document 0 is damaged"):
        show.document(kd_copy, "00", "train", 0, vocabulary)


@pytest.mark.parametrize("kind", ["bin", "idx"])
def test_the_error_names_a_missing_file(kd_copy, vocabulary, kind):
    (kd_copy / f"train/shard_00_span.{kind}").unlink()
    with pytest.raises(BadInput, match=rf"shard_00_span\.{kind}: the file is missing"):
        show.document(kd_copy, "00", "train", 0, vocabulary)


def test_a_picture_has_as_many_messages_as_a_page_shows_inline():
    def drawn(body: str, count: int = 12) -> tuple[str, int]:
        line = Message("user", [Token(f"<|start|>user<|message|>{body}\n", span="reasoning")])
        svg = show.picture("<b>\x1b", [line] * count).svg
        ElementTree.fromstring(svg)
        assert len(markdown.image("tokens", svg)) <= markdown.INLINE
        assert "&lt;b&gt;" in svg
        return svg, svg.count("user: ")

    svg, shown = drawn("a body")
    assert ("user: a body</text>" in svg, shown) == (True, 9)
    assert f"fill='{show._FILLS[1]}'" in svg
    assert 0 < drawn("<" * 30)[1] < 9
    assert drawn("a body", 2)[1] == 2


def test_a_document_is_compared_with_its_own_place_in_the_three_indexes(kd_copy, vocabulary):
    """Reading all entries of the indexes for each document would take seconds in a full shard."""
    count = len(megatron.read(kd_copy / "train/shard_00_tokens"))
    wanted = show.document(kd_copy, "00", "train", 0, vocabulary)
    for name in ("tokens", "lossmask", "span"):
        index = kd_copy / f"train/shard_00_{name}.idx"
        whole = index.read_bytes()
        pointer = bytearray(whole)
        pointer[34 + 4 * count + 8 * 3] ^= 64
        index.write_bytes(pointer)
        assert show.document(kd_copy, "00", "train", 0, vocabulary) == wanted
        for document in (2, 3):
            with pytest.raises(BadInput, match=rf"shard_00_\w+\.bin: document {document} is dam"):
                show.document(kd_copy, "00", "train", document, vocabulary)
        index.write_bytes(whole)


def test_a_document_with_another_place_in_one_index_is_not_shown(kd_copy, vocabulary):
    """Its length is right there, and its values are those of a label too far."""
    count = len(megatron.read(kd_copy / "train/shard_00_tokens"))
    index = kd_copy / "train/shard_00_span.idx"
    places = np.memmap(index, "<i8", "r+", 34 + 4 * count, count)
    places[1:3] += 1
    places.flush()
    with pytest.raises(BadInput, match=r"shard_00_span\.bin: document 1 is damaged"):
        show.document(kd_copy, "00", "train", 1, vocabulary)


def test_a_document_behind_the_end_of_an_index_is_not_shown(kd_copy, vocabulary):
    for kind in ("idx", "bin"):
        shorter = (kd_copy / f"valid/shard_00_span.{kind}").read_bytes()
        (kd_copy / f"train/shard_00_span.{kind}").write_bytes(shorter)
    last = len(megatron.read(kd_copy / "train/shard_00_tokens")) - 1
    with pytest.raises(BadInput, match=rf"shard_00_span\.bin: document {last} is damaged"):
        show.document(kd_copy, "00", "train", last, vocabulary)


SPLIT = ["\U0001d11e", "👨\u200d👩\u200d👧", "🇩🇪🫠", "龘靐齉", "a𒐫 b", "é", "naïve\n"]
GROUP = re.compile("‹([^‹›]+)›([₀-₉]+)")


def _shown(ids: list[int], vocabulary: Path, **changes: list[int]) -> list[str]:
    """The shown tokens after a first one, which begins the document and is no label."""
    count = len(ids) + 1
    ones = {"mask": [1] * count, "span": [1] * count} | changes
    (line,) = show.messages([200_006, *ids], bounds=[(0, count)], vocabulary=vocabulary, **ones)
    return [token.text.rstrip("\n") for token in line.tokens[1:]]


@pytest.mark.parametrize("text", SPLIT)
def test_a_character_of_several_tokens_is_shown_as_one_marked_group(text, vocabulary):
    ids = encode.encoding(vocabulary).encode_ordinary(text)
    *shown, last = _shown([*ids, 200_007], vocabulary)
    assert last == "<|end|>"
    subscripts = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
    groups = [GROUP.fullmatch(one) for one in shown]
    counts = [int(group[2].translate(subscripts)) if group else 1 for group in groups]
    assert sum(counts) == len(ids)
    assert 1 not in [count for count, group in zip(counts, groups, strict=True) if group]
    visible = text.replace(" ", "·").replace("\n", "⏎").replace("\u200d", "‹U+200D›")
    assert GROUP.sub(r"\1", "".join(shown)) == visible


def test_bytes_that_are_no_character_are_hexadecimal_and_other_spans_are_in_no_group(vocabulary):
    """A cut character, one that a control token divides, and bytes that no text has."""
    encoding = encode.encoding(vocabulary)
    ids = encoding.encode_ordinary("\U0001d11e")
    cut = [encoding.decode_single_token_bytes(one).hex() for one in ids[:-1]]
    assert _shown(ids[:-1], vocabulary) == [f"‹{one}›" for one in cut]
    (last,) = [f"‹{encoding.decode_single_token_bytes(ids[-1]).hex()}›"]
    divided = _shown([*ids[:-1], 200_007, ids[-1]], vocabulary)
    assert divided == [*(f"‹{one}›" for one in cut), "<|end|>", last]
    assert _shown([ids[-1], *ids], vocabulary) == [last, f"‹\U0001d11e›{'₀₁₂₃₄'[len(ids)]}"]
    # The two differ in a damaged dataset, which is shown as it is.
    ids = encode.encoding(vocabulary).encode_ordinary("\U0001d11e")
    for name in ("mask", "span"):
        values = [1] * (len(ids) - 1) + [0, 0]
        shown = _shown(ids, vocabulary, **{name: values})
        assert len(shown) == len(ids)


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch, vocabulary: Path) -> None:
    """A process for each row made a page of 25 rows take seconds."""
    monkeypatch.setattr(show, "vocabulary_of", lambda _: vocabulary)
    monkeypatch.setattr(child, "stream", lambda *_, **__: pytest.fail("a process was started"))


@pytest.mark.usefixtures("no_child")
def test_rows_of_a_harmony_shard_are_drawn_from_the_page_that_was_read(write_rows):
    texts = [conversation(f"ask {n}", "think", f"say {n}") for n in range(3)]
    shard = write_rows([(f"id {n}", as_json(text)) for n, text in enumerate(texts)])
    rows = open_table(shard.parent, "synth/harmony").rows(0, 25)
    assert len(rows) == 3
    for number, row in enumerate(rows):
        shown = "".join(token.text for token in row.tokens())
        assert f"ask·{number}" in shown
        assert f"say·{number}" in shown
        (picture,) = row.pictures()
        assert f">07 row {number} · id {number}<" in picture.svg


@pytest.mark.usefixtures("no_child")
def test_a_row_that_cannot_be_rendered_says_so_and_the_others_are_drawn(write_rows):
    shard = write_rows([("a", "[]"), ("b", as_json(conversation("q", "r", "f")))])
    bad, good = open_table(shard.parent, "synth/harmony").rows(0, 25)
    with pytest.raises(GristmillError, match=f"{shard.name}:1: synth_id 'a'"):
        bad.tokens()
    assert good.tokens()

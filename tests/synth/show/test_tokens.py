"""Shown tokens: their texts, spans and masks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import indexed
from gristmill.synth.show import tokens
from gristmill.vocabularies import encode
from tests.synth.conversations import as_json, conversation


def test_tokens_have_the_text_span_and_mask_of_the_datasets(
    write_rows: Callable[..., Path], vocabulary: Path, tmp_path: Path
) -> None:
    shard = write_rows([("a", as_json(conversation("hi you\n", "<|end|> \x00", "ok 😀")))])
    build_kd_shard(shard, tmp_path / "out", KDConfig(vocabulary, 0.0))
    title, lines = tokens.conversation(tmp_path / "out", "07", "train", 0, vocabulary)
    assert "train document 0 · a · " in title
    assert "synth_harmony_shard_07.parquet row 1" in title
    assert [line.label for line in lines] == ["user", "analysis", "final", "end"]
    assert [c.text for c in lines[0].tokens] == [
        "<|start|>", "user", "<|message|>", "hi", "·you", "⏎", "<|end|>",
    ]  # fmt: skip
    for line, span in zip(lines, (0, 1, 2, 0), strict=True):
        assert {token.span for token in line.tokens} == {span}
        assert {token.masked for token in line.tokens} == {span == 0}
    body = lines[1].tokens[5:-1]
    assert "".join(token.text for token in body) == "<|end|>·‹U+0000›"
    assert not any(token.control for token in body)
    assert lines[1].tokens[-1] == tokens.ShownToken("<|end|>", 1, False, True)


def test_long_messages_are_shortened(
    write_rows: Callable[..., Path], vocabulary: Path, tmp_path: Path
) -> None:
    shard = write_rows([("a", as_json(conversation("q", "word " * 200, "f")))])
    build_kd_shard(shard, tmp_path / "out", KDConfig(vocabulary, 0.0))
    _, lines = tokens.conversation(tmp_path / "out", "07", "train", 0, vocabulary)
    shown = lines[1].tokens
    assert len(shown) == tokens._HEAD + 1 + tokens._TAIL
    (hidden,) = [token for token in shown if token.span is None]
    # A header of five, two hundred words, a last space and the terminator.
    assert hidden.text == f"… {5 + 200 + 1 + 1 - tokens._HEAD - tokens._TAIL} more …"


def test_a_document_is_compared_with_its_own_place_in_the_three_indexes(
    kd_copy: Path, vocabulary: Path
) -> None:
    """Reading all entries of the indexes for each document would take seconds in a full shard."""
    count = len(indexed.read(kd_copy / "train/shard_00_tokens"))
    wanted = tokens.conversation(kd_copy, "00", "train", 0, vocabulary)
    for name in ("tokens", "lossmask", "span"):
        index = kd_copy / f"train/shard_00_{name}.idx"
        whole = index.read_bytes()
        pointer = bytearray(whole)
        pointer[34 + 4 * count + 8 * 3] ^= 64
        index.write_bytes(pointer)
        assert tokens.conversation(kd_copy, "00", "train", 0, vocabulary) == wanted
        for document in (2, 3):
            with pytest.raises(BadInput, match=rf"shard_00_\w+\.bin: document {document} is dam"):
                tokens.conversation(kd_copy, "00", "train", document, vocabulary)
        index.write_bytes(whole)


def test_a_document_with_another_place_in_one_index_is_not_shown(
    kd_copy: Path, vocabulary: Path
) -> None:
    """Its length is right there, and its values are those of a label too far."""
    count = len(indexed.read(kd_copy / "train/shard_00_tokens"))
    index = kd_copy / "train/shard_00_span.idx"
    places = np.memmap(index, "<i8", "r+", 34 + 4 * count, count)
    places[1:3] += 1
    places.flush()
    with pytest.raises(BadInput, match=r"shard_00_span\.bin: document 1 is damaged"):
        tokens.conversation(kd_copy, "00", "train", 1, vocabulary)


def test_a_document_behind_the_end_of_an_index_is_not_shown(
    kd_copy: Path, vocabulary: Path
) -> None:
    for kind in ("idx", "bin"):
        shorter = (kd_copy / f"valid/shard_00_span.{kind}").read_bytes()
        (kd_copy / f"train/shard_00_span.{kind}").write_bytes(shorter)
    last = len(indexed.read(kd_copy / "train/shard_00_tokens")) - 1
    with pytest.raises(BadInput, match=rf"shard_00_span\.bin: document {last} is damaged"):
        tokens.conversation(kd_copy, "00", "train", last, vocabulary)


SPLIT = ["\U0001d11e", "👨\u200d👩\u200d👧", "🇩🇪🫠", "龘靐齉", "a𒐫 b", "é", "naïve\n"]


def _shown(ids: list[int], vocabulary: Path, **changes: list[int]) -> list[tokens.ShownToken]:
    """The shown tokens after a first one, which begins the document and is no label."""
    count = len(ids) + 1
    ones = {"mask": [1] * count, "span": [1] * count} | changes
    (line,) = tokens.lines(
        [200_006, *ids], bounds=[(0, count)], vocabulary=vocabulary, whole=True, **ones
    )
    return line.tokens[1:]


@pytest.mark.parametrize("text", SPLIT)
def test_a_character_of_several_tokens_is_shown_as_one_marked_group(
    text: str, vocabulary: Path
) -> None:
    ids = encode.encoding(vocabulary).encode_ordinary(text)
    shown = _shown([*ids, 200_007], vocabulary)
    assert sum(token.count for token in shown) == len(ids) + 1
    visible = text.replace(" ", "·").replace("\n", "⏎").replace("\u200d", "‹U+200D›")
    assert "".join(token.text for token in shown[:-1]) == visible
    assert shown[-1] == tokens.ShownToken("<|end|>", 1, False, True)
    for token in shown:
        assert (token.marked == token.text) == (token.count == 1)
    assert "\ufffd" not in "".join(token.marked for token in shown)


def test_the_mark_of_a_group_has_the_number_of_its_tokens(vocabulary: Path) -> None:
    ids = encode.encoding(vocabulary).encode_ordinary("\U0001d11e")
    assert len(ids) > 1
    (group,) = _shown(ids, vocabulary)
    assert group.marked == f"‹\U0001d11e›{'₀₁₂₃₄'[len(ids)]}"
    assert tokens.ShownToken("x", 1, False, count=12).marked == "‹x›₁₂"


def test_bytes_that_are_no_character_are_written_in_hexadecimal(vocabulary: Path) -> None:
    """A cut character, one that a control token divides, and bytes that no text has."""
    encoding = encode.encoding(vocabulary)
    ids = encoding.encode_ordinary("\U0001d11e")
    cut = [encoding.decode_single_token_bytes(one).hex() for one in ids[:-1]]
    assert [token.text for token in _shown(ids[:-1], vocabulary)] == [f"‹{one}›" for one in cut]
    (last,) = [f"‹{encoding.decode_single_token_bytes(ids[-1]).hex()}›"]
    divided = _shown([*ids[:-1], 200_007, ids[-1]], vocabulary)
    assert [token.text for token in divided] == [*(f"‹{one}›" for one in cut), "<|end|>", last]
    assert [token.text for token in _shown([ids[-1], *ids], vocabulary)] == [last, "\U0001d11e"]


def test_tokens_of_another_span_or_mask_are_in_no_group(vocabulary: Path) -> None:
    """The two differ in a damaged dataset, which is shown as it is."""
    ids = encode.encoding(vocabulary).encode_ordinary("\U0001d11e")
    for name in ("mask", "span"):
        values = [1] * (len(ids) - 1) + [0, 0]
        shown = _shown(ids, vocabulary, **{name: values})
        assert [token.count for token in shown] == [1] * len(ids)


def test_hidden_tokens_are_counted_one_by_one() -> None:
    group = tokens.ShownToken("x", 1, False, count=3)
    shown = tokens._shortened([group] * 100, 1)
    (hidden,) = [token.text for token in shown if token.span is None]
    assert hidden == f"… {3 * (100 - tokens._HEAD - tokens._TAIL)} more …"


def test_a_message_is_shortened_only_where_that_hides_more_than_one_token() -> None:
    word = tokens.ShownToken("a", 1, False)
    most = tokens._HEAD + tokens._TAIL + 1
    assert len(tokens._shortened([word] * most, 1)) == most
    shortened = tokens._shortened([word] * (most + 1), 1)
    assert len(shortened) == most
    assert shortened[tokens._HEAD].text == "… 2 more …"

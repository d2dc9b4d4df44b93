"""Shown tokens: their texts, spans and masks."""

from collections.abc import Callable
from pathlib import Path

from gristmill.synth.build.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
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
    assert "".join(token.text for token in body) == "<|end|>·\N{REPLACEMENT CHARACTER}"
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


def test_bytes_that_are_not_utf_8_are_written_in_hexadecimal(vocabulary: Path) -> None:
    encoding = encode.encoding(vocabulary)
    ids = encoding.encode_ordinary("\U0001d11e")
    texts = [tokens.written(token, encoding) for token in ids]
    assert any(text.startswith("‹") for text in texts)


def test_a_message_is_shortened_only_where_that_hides_more_than_one_token() -> None:
    word = tokens.ShownToken("a", 1, False)
    most = tokens._HEAD + tokens._TAIL + 1
    assert len(tokens._shortened([word] * most, 1)) == most
    shortened = tokens._shortened([word] * (most + 1), 1)
    assert len(shortened) == most
    assert shortened[tokens._HEAD].text == "… 2 more …"

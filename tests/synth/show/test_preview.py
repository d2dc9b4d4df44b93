"""The preview of a shard: what is on the chips, and that it fits into an event."""

import base64
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import counts_of
from gristmill.synth.build.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import indexed
from gristmill.synth.show import preview
from gristmill.synth.show import tokens as chips
from gristmill.vocabularies import encode
from tests.synth.conversations import as_json, conversation

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def built(harmony: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("picture") / "kd"
    build_kd_shard(harmony, out, KDConfig(vocabulary, 0.2))
    return out


def drawings(markdown: str) -> list[ET.Element]:
    found = re.findall(r"!\[[^]]+\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    return [ET.fromstring(base64.b64decode(data)) for data in found]


def test_chips_say_what_the_datasets_hold(
    write_rows: Callable[..., Path], vocabulary: Path, tmp_path: Path
) -> None:
    shard = write_rows([("a", as_json(conversation("hi you\n", "<|end|> \x00", "ok 😀")))])
    build_kd_shard(shard, tmp_path / "out", KDConfig(vocabulary, 0.0))
    title, lines = chips.conversation(tmp_path / "out", "07", "train", 0, vocabulary)
    assert "train document 0 · a · " in title
    assert "synth_harmony_shard_07.parquet row 1" in title
    assert [line.label for line in lines] == ["user", "analysis", "final", "end"]
    assert [c.text for c in lines[0].chips] == [
        "<|start|>", "user", "<|message|>", "hi", "·you", "⏎", "<|end|>",
    ]  # fmt: skip
    for line, span in zip(lines, (0, 1, 2, 0), strict=True):
        assert {chip.span for chip in line.chips} == {span}
        assert {chip.masked for chip in line.chips} == {span == 0}
    body = lines[1].chips[5:-1]
    assert "".join(chip.text for chip in body) == "<|end|>·\N{REPLACEMENT CHARACTER}"
    assert not any(chip.control for chip in body)
    assert lines[1].chips[-1] == chips.Chip("<|end|>", 1, False, True)
    drawing = ET.fromstring(chips.svg([(title, lines)]))
    paths = {path.get("class"): path.get("d", "").count("M") for path in drawing.iter(f"{SVG}path")}
    # One chip of each in the legend.
    assert paths == {
        "s0m": len(lines[0].chips) + 2,
        "s1": len(lines[1].chips) + 1,
        "s2": len(lines[2].chips) + 1,
    }


def test_long_messages_are_shortened(
    write_rows: Callable[..., Path], vocabulary: Path, tmp_path: Path
) -> None:
    shard = write_rows([("a", as_json(conversation("q", "word " * 200, "f")))])
    build_kd_shard(shard, tmp_path / "out", KDConfig(vocabulary, 0.0))
    _, lines = chips.conversation(tmp_path / "out", "07", "train", 0, vocabulary)
    shown = lines[1].chips
    assert len(shown) == chips._HEAD + 1 + chips._TAIL
    (hidden,) = [chip for chip in shown if chip.span is None]
    # A header of five, two hundred words, a last space and the terminator.
    assert hidden.text == f"… {5 + 200 + 1 + 1 - chips._HEAD - chips._TAIL} more …"


def test_a_preview_has_everything_and_fits(built: Path, harmony: Path, vocabulary: Path) -> None:
    summary = build_kd_shard(harmony, built.parent / "again", KDConfig(vocabulary, 0.2))
    text = preview.preview(built, "00", vocabulary, counts_of(summary))
    assert len(text.encode()) < 100_000
    assert f"| train | {summary.train_rows:,} | {summary.train_tokens:,} |" in text
    for span, tokens in summary.spans.items():
        assert f"| {span} | {'masked' if span == 'prompt' else 'supervised'} | {tokens:,} |" in text
    for names in (summary.languages, summary.exercises):
        assert all(f"| {name} | {count:,} |" in text for name, count in names.items())
    conversations, histogram = drawings(text)
    titles = [x.text or "" for x in conversations.iter(f"{SVG}text") if x.get("class") == "h"]
    assert [title.split(" · ")[0] for title in titles] == [
        "train document 0",
        "train document 1",
        "valid document 0",
    ]
    rows = summary.train_rows + summary.valid_rows
    assert any(f"{rows:,} documents" in (x.text or "") for x in histogram.iter(f"{SVG}text"))


def test_a_preview_gives_up_documents_before_its_limit(
    built: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"train_rows": 1, "train_tokens": 2, "valid_rows": 0, "valid_tokens": 0}
    whole = preview.preview(built, "00", vocabulary, counts)
    monkeypatch.setattr(preview, "LIMIT", len(whole.encode()) - 1)
    less = preview.preview(built, "00", vocabulary, counts)
    assert len(less.encode()) <= preview.LIMIT
    assert len(drawings(less)) == 2


def test_names_cannot_break_a_table() -> None:
    counts = {"train_rows": 0, "train_tokens": 0, "valid_rows": 0, "valid_tokens": 0}
    text = preview.preview(
        Path("nowhere"), "00", Path("v"), counts | {"languages/a|b\n<script>`": 3}
    )
    assert "| a\\|b &lt;script&gt;\\` | 3 |" in text


def test_equal_lengths_have_a_histogram() -> None:
    drawn = preview.histogram(np.array([7]), np.array([5]))
    assert any("5 documents" in (x.text or "") for x in ET.fromstring(drawn).iter(f"{SVG}text"))


def test_lengths_are_counted_chunk_by_chunk(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = np.concatenate(
        [indexed.read(built / s / "shard_00_tokens").lengths for s in ("train", "valid")]
    )
    whole = preview.document_lengths(built, "00")
    monkeypatch.setattr(indexed, "_BATCH", 7)
    for found in (whole, preview.document_lengths(built, "00")):
        assert np.repeat(*found).tolist() == sorted(every.tolist())
    for q in (0, 0.3, 0.5, 0.995, 1):
        assert preview._quantile(*whole, q) == pytest.approx(np.quantile(every, q))


def test_odd_bytes_are_written_in_hexadecimal(vocabulary: Path) -> None:
    encoding = encode.encoding(vocabulary)
    tokens = encoding.encode_ordinary("\U0001d11e")
    pieces = [chips.written(token, encoding) for token in tokens]
    assert any(piece.startswith("‹") for piece in pieces)

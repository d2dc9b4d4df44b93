"""The preview of a shard: all its counts, and that it fits into an event."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import counts_of
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import indexed
from gristmill.synth.show import preview
from gristmill.synth.show.tokens import Line, ShownToken
from tests.drawings import images
from tests.synth.damage import FRACTION

SVG = "{http://www.w3.org/2000/svg}"


def drawings(markdown: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in images(markdown)]


def test_a_preview_has_everything_and_fits(
    kd_root: Path, harmony: Path, vocabulary: Path, tmp_path: Path
) -> None:
    summary = build_kd_shard(harmony, tmp_path / "kd", KDConfig(vocabulary, FRACTION))
    text = preview.preview(kd_root, "00", vocabulary, counts_of(summary))
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


def test_a_long_preview_loses_conversations_until_it_fits(
    kd_root: Path, vocabulary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"train_rows": 1, "train_tokens": 2, "valid_rows": 0, "valid_tokens": 0}
    text = preview.preview(kd_root, "00", vocabulary, counts)
    monkeypatch.setattr(preview, "LIMIT", len(text.encode()) - 1)
    shorter = preview.preview(kd_root, "00", vocabulary, counts)
    assert len(shorter.encode()) <= preview.LIMIT
    assert len(drawings(shorter)) == 2


def test_names_cannot_break_a_table() -> None:
    counts = {"train_rows": 0, "train_tokens": 0, "valid_rows": 0, "valid_tokens": 0}
    text = preview.preview(
        Path("nowhere"), "00", Path("v"), counts | {"languages/a|b\n<script>`": 3}
    )
    assert "| a\\|b &lt;script&gt;\\` | 3 |" in text


def texts(image: ET.Element, style: str) -> list[str]:
    return [x.text or "" for x in image.iter(f"{SVG}text") if x.get("class") == style]


def test_each_token_is_a_rectangle_of_its_span() -> None:
    lines = [
        Line("user", [ShownToken("<|start|>", 0, True, True), ShownToken("hi", 0, True)]),
        Line("analysis", [ShownToken("a", 1, False), ShownToken("… 9 more …", None, False)]),
        Line("final", [ShownToken("b", 2, False)] * 3),
    ]
    image = ET.fromstring(preview.svg([("a <title>", lines)]))
    paths = {path.get("class"): path.get("d", "").count("M") for path in image.iter(f"{SVG}path")}
    # One token of each span is in the legend.
    assert paths == {"s0m": 2 + 1, "s1": 1 + 1, "s2": 3 + 1}
    assert texts(image, "h") == ["a <title>"]
    assert texts(image, "c m") == ["<|start|>"]
    assert texts(image, "m") == ["prompt", "hi"]
    legend = "dashed and pale: masked, not in the loss"
    assert texts(image, "l") == [legend, "user", "analysis", "… 9 more …", "final"]


def test_a_long_message_wraps_within_the_width() -> None:
    line = Line("final", [ShownToken("word", 2, False)] * 60)
    image = ET.fromstring(preview.svg([("t", [line])]))
    places = [
        (float(x.get("x", "")), float(x.get("y", "")))
        for x in image.iter(f"{SVG}text")
        if x.text == "word"
    ]
    assert len({y for _, y in places}) > 1
    assert min(x for x, _ in places) == preview._LEFT + 3
    width = preview._token_width(line.tokens[0])
    assert max(x for x, _ in places) - 3 + width <= preview._WIDTH - 10
    assert max(y for _, y in places) < float(image.get("height", ""))


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    widths = [preview._token_width(ShownToken(x, 0, False)) for x in ("ab", "中", "e\u0301x")]
    assert len(set(widths)) == 1
    assert preview._token_width(ShownToken("a", 0, False)) < widths[0]


def test_a_histogram_has_a_bar_for_each_length_and_the_median() -> None:
    image = preview.histogram(np.array([10, 20, 42]), np.array([1, 2, 4]))
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', image)
    assert [height for _, _, height in bars] == ["32.5", "65.0", "130.0"]
    assert [y for _, y, _ in bars] == ["127.5", "95.0", "30.0"]
    assert [x for x, _, _ in bars] == ["60.0", "185.0", "447.5"]
    assert ">median 42<" in image
    assert "(7 documents)" in image


def test_the_last_bar_has_all_lengths_beyond_the_percentile() -> None:
    image = preview.histogram(np.array([1, 33, 10_000]), np.array([500, 500, 3]))
    bars = re.findall(r'height="([\d.]+)"/>', image)[1:]
    assert bars[-1] == f"{130 * 1:.1f}"
    assert ">33</text>" in image


def test_equal_lengths_have_a_histogram() -> None:
    image = preview.histogram(np.array([7]), np.array([5]))
    assert any("5 documents" in (x.text or "") for x in ET.fromstring(image).iter(f"{SVG}text"))


def test_lengths_are_counted_batch_by_batch(kd_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = np.concatenate(
        [indexed.read(kd_root / s / "shard_00_tokens").lengths for s in ("train", "valid")]
    )
    expected = preview.document_lengths(kd_root, "00")
    monkeypatch.setattr(indexed, "_BATCH", 7)
    for counted in (expected, preview.document_lengths(kd_root, "00")):
        assert np.repeat(*counted).tolist() == sorted(every.tolist())
    for q in (0, 0.3, 0.5, 0.995, 1):
        assert preview._quantile(*expected, q) == pytest.approx(np.quantile(every, q))

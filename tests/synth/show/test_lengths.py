"""The distribution of document lengths."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from gristmill.synth.format import indexed
from gristmill.synth.show import lengths

SVG = "{http://www.w3.org/2000/svg}"


def test_a_histogram_has_a_bar_for_each_length_and_the_median() -> None:
    image = lengths.histogram(np.array([10, 20, 42]), np.array([1, 2, 4]))
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', image)
    assert [height for _, _, height in bars] == ["32.5", "65.0", "130.0"]
    assert [y for _, y, _ in bars] == ["127.5", "95.0", "30.0"]
    assert [x for x, _, _ in bars] == ["60.0", "185.0", "447.5"]
    assert ">median 42<" in image
    assert "(7 documents)" in image


def test_the_last_bar_has_all_lengths_beyond_the_percentile() -> None:
    image = lengths.histogram(np.array([1, 33, 10_000]), np.array([500, 500, 3]))
    bars = re.findall(r'height="([\d.]+)"/>', image)[1:]
    assert bars[-1] == f"{130 * 1:.1f}"
    assert ">33</text>" in image


def test_equal_lengths_have_a_histogram() -> None:
    image = lengths.histogram(np.array([7]), np.array([5]))
    assert any("5 documents" in (x.text or "") for x in ET.fromstring(image).iter(f"{SVG}text"))


def test_lengths_are_counted_batch_by_batch(kd_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = np.concatenate(
        [indexed.read(kd_root / s / "shard_00_tokens").lengths for s in ("train", "valid")]
    )
    expected = lengths.document_lengths(kd_root, "00")
    monkeypatch.setattr(indexed, "_BATCH", 7)
    for counted in (expected, lengths.document_lengths(kd_root, "00")):
        assert np.repeat(*counted).tolist() == sorted(every.tolist())
    for q in (0, 0.3, 0.5, 0.995, 1):
        assert lengths._quantile(*expected, q) == pytest.approx(np.quantile(every, q))

"""Figures and pictures of an alignment."""

from __future__ import annotations

from pathlib import Path

from gristmill.reasoning.format import names
from gristmill.reasoning.show.steps_preview import alignment_figures, examples_svg
from tests.drawings import images, texts

COUNTS = {
    "examples": 4,
    "aligned": 3,
    "low_confidence": 2,
    "spans": 6,
    "mean_confidence": 0.8125,
    "rules/heuristic:lines": 1,
    "rules/regex:markers": 2,
    "labels/Step": 6,
    "confidence/0.8": 2,
    "confidence/0.9": 1,
}


def test_coverage_and_confidence_are_numbers_and_rules_a_table(built: Path) -> None:
    figures = alignment_figures(built / names.ALIGNMENT, "gsm8k__test", COUNTS)
    assert figures["aligned_percent"] == 75
    assert figures["low_confidence_percent"] == 50
    assert (figures["spans_per_example"], figures["rows"]) == (1.5, 4)
    assert "markers | 2 | 66.7 %" in str(figures["rules"])
    (drawing,) = images(str(figures["confidences"]))
    assert {"0.8", "0.9", "mean 0.812"} <= set(texts(drawing))


def test_the_first_example_of_each_rule_is_drawn(built: Path) -> None:
    shown = " ".join(text for image in images("\n".join(_pictures(built))) for text in texts(image))
    assert len(_pictures(built)) == 2
    assert "gsm8k_test_000000" in shown and "gsm8k_test_000001" in shown


def test_without_the_records_there_is_no_picture(tmp_path: Path) -> None:
    assert examples_svg(tmp_path / "alignment", "gsm8k", "test") == []


def _pictures(built: Path) -> list[str]:
    return examples_svg(built / names.ALIGNMENT, "gsm8k", "test")

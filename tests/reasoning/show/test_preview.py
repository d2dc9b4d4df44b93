"""Tables and figures of records, token shards and licences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gristmill.publish.build import Published
from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.show.preview import (
    alignment_figures,
    allowed,
    examples_svg,
    gate_text,
    histogram,
    licence_figures,
    licence_text,
    median,
    normalized_figures,
    report_figures,
    shards_figures,
    shares,
    source_table,
)
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


def published(
    folder: Path, partition: str | None = None, counts: Mapping[str, float] | None = None
) -> Published:
    record: Any = SimpleNamespace(
        partition=partition, counts=counts, config={}, asset="reasoning/normalized"
    )
    return Published(folder, record, rebuilt=True)


def test_coverage_and_confidence_are_numbers_and_rules_a_table(built: Path) -> None:
    figures = alignment_figures(published(built / names.ALIGNMENT, "gsm8k__test", COUNTS))
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


def test_a_report_is_a_table_of_splits_and_what_is_outside_of_a_tolerance(tmp_path: Path) -> None:
    report = {
        "splits": {"gsm8k__test": {"examples": 1319, "total_tokens": 210519, "pct_with_cot": 0.0}},
        "datasets": {"mine": {"splits": {"gsm8k__test": {"examples": 7}}}},
        "gate": {"passed": False, "baseline": "2026-11-20", "breaches": ["gsm8k__test: <x>"]},
        "warnings": ["gsm8k__test: 2 raw records were rejected"],
        "invariance": {"flagged": {"gsm8k__test": {"nbsp": 0.028}}},
    }
    (tmp_path / "2026-11-22.json").write_text(json.dumps(report))
    figures = report_figures(published(tmp_path, "2026-11-22"))
    assert "1,319 | 210,519 | – | 0.00 |" in str(figures["splits of the report"])
    assert "mine/gsm8k__test | 7 |" in str(figures["splits of the report"])
    assert "2 raw records were rejected" in str(figures["what to know"])
    assert "nbsp | 2.80% |" in str(figures["perturbations"])
    assert "the report of 2026" in str(figures["gate"]) and "&lt;x&gt;" in str(figures["gate"])


def test_a_gate_that_passed_says_so() -> None:
    text = gate_text({"passed": True, "baseline": None, "breaches": []})
    assert text == "Compared with no baseline: nothing is outside of a tolerance.\n"


def test_records_are_shown_with_source_licence_and_rejections(built: Path) -> None:
    counts = {"records": 3, "with_cot": 1, "rejected": 2, "rejected_by/no answer": 1}
    counts |= {"left_out_by/evidence": 1}
    figures = normalized_figures(published(built / names.NORMALIZED, "gsm8k__test", counts))
    assert figures["with_cot_percent"] == 33.333
    assert "openai/gsm8k main" in str(figures["source and licence"])
    assert "no answer | 1 | 20.0 %" in str(figures["rejected records"])
    assert "evidence | 1 | 20.0 %" in str(figures["rejected records"])
    first = str(figures["first records"])
    assert "Two and two?" in first and "&lt;b&gt;" in first and "<b>" not in first


def test_tokens_are_counted_by_kind_and_lengths_are_drawn(built: Path) -> None:
    counts = {
        "examples": 3,
        "text_tokens": 60,
        "eos_tokens": 3,
        "pad_tokens": 1,
        "with_cot": 1,
    }
    figures = shards_figures(published(built / names.TOKENIZED, "gsm8k__test", counts))
    assert (figures["tokens_per_example"], figures["with_cot_percent"]) == (20, 33.333)
    assert "eos | 3 | 4.7 %" in str(figures["tokens"])
    (drawing,) = images(str(figures["lengths"]))
    assert sum(int(text) for text in texts(drawing)[2::2] if text.isdigit()) >= 0
    assert f"median {figures['tokens_per_example_median']}" in texts(drawing)


def test_a_split_without_examples_has_no_lengths(built: Path) -> None:
    figures = shards_figures(published(built / names.TOKENIZED, "gsm8k__train", {"examples": 0}))
    assert list(figures) == ["source and licence", "rows"]


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=lambda corpus: corpus.name)
def test_the_page_of_a_corpus_says_what_its_terms_allow(corpus) -> None:  # type: ignore[no-untyped-def]
    shown = source_table(corpus)
    assert corpus.licence.id.replace("-", "") in shown.replace("\\", "").replace("-", "")
    assert f"training | {allowed(corpus.licence.training_allowed)}" in shown
    assert ("not confirmed" in licence_text(corpus.licence)) is not corpus.licence.confirmed


def test_the_manifest_lists_source_records_and_licence_of_each_corpus(tmp_path: Path) -> None:
    entry = {
        "hf_path": "openai/gsm8k",
        "licence": {
            "id": "MIT",
            "url": "",
            "redistributable": True,
            "training_allowed": None,
            "confirmed": False,
        },
        "files": {"train": {"records": 7000}, "test": {"records": 473}},
    }
    (tmp_path / names.MANIFEST).write_text(json.dumps({"gsm8k": entry}))
    table = str(licence_figures(published(tmp_path))["sources and licences"])
    assert "| 7,473 |" in table and "unknown | allowed" in table


def test_the_median_is_the_length_that_half_of_the_examples_have_at_most() -> None:
    assert median({}) == 0
    assert median({7: 1}) == 7
    assert median({1: 2, 5: 1, 9: 1}) == 1
    assert median({1: 1, 5: 2, 9: 1}) == 5


def test_every_example_is_in_a_bar_and_the_long_ones_are_in_the_last() -> None:
    lengths = Counter(dict.fromkeys(range(1, 151), 1) | {100_000: 1})
    drawing = histogram(lengths)
    assert "median 76" in drawing
    assert ">150+<" in drawing and ">130<" in drawing
    assert drawing.count("<rect") == 1 + 16
    assert histogram({}).startswith("<svg")
    assert ">5<" in histogram({5: 3})


def test_a_share_of_nothing_is_no_row() -> None:
    assert shares([("text", 3), ("pad", 1), ("eos", 0)], 4) == [
        ("text", "3", "75.0 %"),
        ("pad", "1", "25.0 %"),
    ]
    assert shares([("text", 3)], 0) == [("text", "3", "–")]

"""Tables and figures of records, token shards and licences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.show.preview import (
    allowed,
    licence_figures,
    licence_text,
    normalized_figures,
    shards_figures,
    source_table,
)
from tests.drawings import images, texts


def test_records_are_shown_with_source_licence_and_rejections(built: Path) -> None:
    counts = {"records": 3, "with_cot": 1, "rejected": 2, "rejected_by/no answer": 1}
    counts |= {"left_out_by/evidence": 1}
    figures = normalized_figures(built / names.NORMALIZED, "gsm8k__test", counts)
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
    figures = shards_figures(built / names.TOKENIZED, "gsm8k__test", counts)
    assert (figures["tokens_per_example"], figures["with_cot_percent"]) == (20, 33.333)
    assert "eos | 3 | 4.7 %" in str(figures["tokens"])
    (drawing,) = images(str(figures["lengths"]))
    assert sum(int(text) for text in texts(drawing)[2::2] if text.isdigit()) >= 0
    assert f"median {figures['tokens_per_example_median']}" in texts(drawing)


def test_a_split_without_examples_has_no_lengths(built: Path) -> None:
    figures = shards_figures(built / names.TOKENIZED, "gsm8k__train", {"examples": 0})
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
    table = str(licence_figures(tmp_path)["sources and licences"])
    assert "| 7,473 |" in table and "unknown | allowed" in table

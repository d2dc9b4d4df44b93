"""Sample drops: every form, several formats, the same bytes every time."""

import json
from typing import Any

import pytest

from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.drops import splits_of
from gristmill.corpora.records import records
from gristmill.reasoning.builders.normalize import NormalizeSummary, normalize
from gristmill.reasoning.config import NormalizeConfig
from gristmill.reasoning.samples import write_drop

SHAPES = {
    "gsm8k": {"seed"},
    "cot_collection": {"seed", "public", "flan_cot"},
    "openr1_math_220k": {"seed", "public"},
    "reasoning_traces": {"seed", "public", "backward"},
    "reveal": {"seed", "public"},
    "trip": {"seed", "public", "curated"},
    "wiqa": {"seed", "public", "nested"},
}


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[list[dict[str, Any]], list[NormalizeSummary]]]:
    """Of each corpus the records of all splits, and their summaries."""
    root = tmp_path_factory.mktemp("samples")
    found = {}
    for corpus in CORPORA:
        write_drop(root / corpus, corpus)
        made, summaries = [], []
        for split in splits_of(root / corpus):
            out = root / "out" / corpus / split
            summaries.append(normalize(root / corpus, out, NormalizeConfig(), split=split))
            made += [record for _, record in records(out / corpus / f"{split}.jsonl")]
        found[corpus] = (made, summaries)
    return found


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_corpus_has_all_forms_and_a_few_dozen_records(corpus, built):
    made, summaries = built[corpus]
    assert {shape for summary in summaries for shape in summary.shapes} == SHAPES[corpus]
    assert 24 <= len(made) <= 60
    assert sum(summary.empty for summary in summaries) == 1
    assert sum(summary.rejected for summary in summaries) == 0
    text = json.dumps(made)
    assert "<|endoftext|>" in text and "\\u2028" in text and "\\u007f" in text
    assert "\\r" not in text


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_drop_is_the_same_every_time(corpus, tmp_path):
    first, second = (write_drop(tmp_path / name, corpus) for name in ("a", "b"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_steps_of_every_kind_are_there(built):
    assert any("cot_steps" in record for record in built["wiqa"][0])
    reveal = [record for record in built["reveal"][0] if "of answer" in str(record["cot"])]
    assert len(reveal) == 14
    assert [step.split()[1] for step in reveal[0]["cot_steps"]] == ["0", "1", "2", "10"]
    programs = [str(record["cot"]).split("\n")[0] for record in built["trip"][0]]
    assert programs[0] == "Conflict: story A, sentences 2 and 3"

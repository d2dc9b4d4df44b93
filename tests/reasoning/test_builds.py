"""Which corpora are tokenised by their terms, and which day has a report."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from gristmill.asset import Asset, Wanted
from gristmill.contract import NothingToBuild
from gristmill.corpora.corpus import CORPORA, Corpus
from gristmill.data_root import DataRoot
from gristmill.reasoning import builds
from gristmill.reasoning.builds import report_build, today
from gristmill.reasoning.family import CATALOG
from gristmill.reasoning.format import names
from gristmill.reasoning.raw.ready import refuse_terms


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=lambda corpus: str(corpus.name))
def test_a_corpus_is_tokenised_unless_its_terms_forbid_training(corpus: Corpus) -> None:
    refuse_terms(corpus, [corpus.name])
    if corpus.name != "reveal":
        refuse_terms(corpus, [])
        return
    for allow in ([], ["gsm8k"]):
        with pytest.raises(NothingToBuild, match=r"CC-BY-ND-4\.0.*forbid.*allow = \[\"reveal\"\]"):
            refuse_terms(corpus, allow)


@pytest.mark.parametrize(
    ("days", "why"), [(-1, "only TODAY can be built"), (1, "only TODAY"), (0, "no split")]
)
def test_only_the_current_day_has_a_report_and_needs_a_split(
    tmp_path: Path, days: int, why: str
) -> None:
    report = next(kind for kind in CATALOG.kinds if kind.asset == "reasoning/qc_report")
    assert isinstance(report, Asset)
    day = (today() + timedelta(days=days)).isoformat()
    with pytest.raises(NothingToBuild, match=why.replace("TODAY", today().isoformat())):
        report_build(Wanted(report, DataRoot(tmp_path), day))


@pytest.mark.parametrize(
    ("record", "is_wanted"),
    [
        ("tokenizer/provenance/gpt2.json", True),
        (f"{names.TOKENIZED}/provenance/gsm8k__test.json", True),
        (f"{names.NORMALIZED}/provenance/gsm8k__test.json", False),
    ],
)
def test_a_report_needs_the_vocabulary_where_it_is_or_has_shards(
    tmp_path: Path, record: str, is_wanted: bool
) -> None:
    (tmp_path / record).parent.mkdir(parents=True)
    (tmp_path / record).touch()
    assert builds._vocabulary_is_wanted(DataRoot(tmp_path)) is is_wanted

"""Which corpora are tokenised by their terms."""

from __future__ import annotations

import pytest

from gristmill.contract import NothingToBuild
from gristmill.reasoning.builds import refuse_terms
from gristmill.reasoning.format.corpora import CORPORA, Corpus


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=lambda corpus: str(corpus.name))
def test_a_corpus_is_tokenised_unless_its_terms_forbid_training(corpus: Corpus) -> None:
    refuse_terms(corpus, [corpus.name])
    if corpus.name != "reveal":
        refuse_terms(corpus, [])
        return
    for allow in ([], ["gsm8k"]):
        with pytest.raises(NothingToBuild, match=r"CC-BY-ND-4\.0.*forbid.*allow = \[\"reveal\"\]"):
            refuse_terms(corpus, allow)

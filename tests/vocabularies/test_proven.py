"""The tables of unproven characters are those that the comparison gave."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.vocabularies import engine, proven
from gristmill.vocabularies.pinned import VOCABULARIES, Vocabulary
from tests import budget
from tests.vocabularies import prove
from tests.vocabularies.places import drop

vocabularies = pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.name)
COUNTS = {"o200k_harmony": 4699, "gpt2": 4657}


def test_the_tables_have_their_digest():
    assert proven.digest(engine.PROVEN_VERSIONS, proven.UNPROVEN) == proven.DIGEST
    assert proven.digest({**engine.PROVEN_VERSIONS, "gigatoken": "0.10.1"}, {}) != proven.DIGEST


@vocabularies
def test_a_table_has_its_ranges_and_the_surrogates(vocabulary):
    unproven = np.flatnonzero(proven.table(proven.UNPROVEN[vocabulary.name]))
    surrogates = np.arange(0xD800, 0xE000)
    rest = np.setdiff1d(unproven, surrogates)
    assert len(unproven) == len(rest) + len(surrogates)
    assert len(rest) == COUNTS[vocabulary.name]
    assert proven.text_of(rest.tolist()) == proven.UNPROVEN[vocabulary.name]
    assert len(proven.table(proven.UNPROVEN[vocabulary.name])) == 0x110000


def _differ_as_the_table_says(vocabulary: Vocabulary, path: Path, count: int) -> bool:
    codes = prove.sampled_codes(vocabulary, "proven", count)
    unproven = proven.table(proven.UNPROVEN[vocabulary.name])
    expected = [code for code in codes if unproven[code] and prove.is_text(code)]
    return prove.differing(vocabulary, path, codes) == expected


@pytest.mark.slow
@vocabularies
def test_a_sample_of_all_code_points_is_as_the_table_says(vocabulary, vocabulary_root):
    assert _differ_as_the_table_says(vocabulary, drop(vocabulary_root, vocabulary), 5_000)


@pytest.mark.slow
@vocabularies
def test_all_code_points_are_as_the_table_says(vocabulary, vocabulary_root):
    path = drop(vocabulary_root, vocabulary)
    if budget.is_whole():
        assert prove.measured(vocabulary, path) == proven.UNPROVEN[vocabulary.name]
        return
    assert _differ_as_the_table_says(vocabulary, path, budget.count(0x110000, 5_000))

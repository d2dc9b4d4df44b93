"""When gigatoken is used, and that its memory is bounded."""

import hashlib
import mmap
import pickle
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from gristmill.vocabularies import engine
from gristmill.vocabularies.encode import Encoder
from gristmill.vocabularies.engine import PROVEN_VERSIONS, Gigatoken
from gristmill.vocabularies.pinned import GPT2, VOCABULARIES, Vocabulary
from gristmill.vocabularies.tokenizer import of_pinned
from tests import budget
from tests.vocabularies import prove
from tests.vocabularies.places import drop


@pytest.mark.parametrize("changed", PROVEN_VERSIONS)
def test_another_version_leaves_all_texts_to_tiktoken(monkeypatch, vocabulary_root, changed):
    path = drop(vocabulary_root, GPT2)
    expected = bytes(Encoder(of_pinned(GPT2, path)).encode(["Hello world"]).ids[0])
    versions = {**PROVEN_VERSIONS, changed: "0.99"}
    monkeypatch.setattr(metadata, "version", versions.__getitem__)
    encoder = Encoder(of_pinned(GPT2, path))
    proven = PROVEN_VERSIONS[changed]
    assert encoder.why_reference_alone == f"{changed} 0.99 is installed, {proven} is proven"
    ids, by_reference = encoder.encode(["Hello world"])
    assert (bytes(ids[0]), by_reference) == (expected, frozenset({0}))


def test_without_its_wheel_tiktoken_does_everything(monkeypatch, vocabulary_root):
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    encoder = Encoder(of_pinned(GPT2, drop(vocabulary_root, GPT2)))
    assert encoder.why_reference_alone == "gigatoken is not installed"
    assert encoder.encode(["a", "b"]).by_reference == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.name)
def test_the_object_is_renewed_beyond_its_bounds(vocabulary, vocabulary_root, monkeypatch):
    fast = Gigatoken(of_pinned(vocabulary, drop(vocabulary_root, vocabulary)))
    resident = 1 << 30
    monkeypatch.setattr(engine, "_resident_bytes", lambda: resident)
    fast.forget()
    first = fast.encoder(fast._least)
    expected = first("some words").tolist()
    resident += engine._GROWTH_BYTES
    assert fast.encoder(0) == first, "the bound itself is allowed"
    resident += 1
    second = fast.encoder(fast._least - 1)
    assert second != first
    assert second("some words").tolist() == expected
    resident += engine._GROWTH_BYTES + 1
    assert fast.encoder(1) == second, "so little text cannot have filled the bound"
    assert fast.encoder(0) != second


def test_resident_memory_is_in_bytes_and_the_fast_engine_does_not_travel(vocabulary_root):
    # Pages of their own: what malloc returns may be resident already.
    with mmap.mmap(-1, 64 << 20) as pages:
        before = engine._resident_bytes()
        for _page in range(0, len(pages), mmap.PAGESIZE):
            pages.write(bytes(mmap.PAGESIZE))
        grown = engine._resident_bytes() - before
    assert 60 << 20 < grown < 80 << 20
    with pytest.raises(TypeError):
        pickle.dumps(Gigatoken(of_pinned(GPT2, drop(vocabulary_root, GPT2))))


@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.name)
def test_the_public_function_of_tiktoken_refuses_what_we_rely_on(vocabulary, vocabulary_root):
    """`encode_to_numpy` raises for a lone surrogate; with no text disallowed it takes all."""
    reference = engine.tiktoken_encoding(vocabulary, drop(vocabulary_root, vocabulary))
    with pytest.raises(UnicodeEncodeError):
        reference.encode_to_numpy("a\ud800", disallowed_special=())
    control = reference.encode_to_numpy("<|endoftext|>", disallowed_special=())
    assert control.tolist() == reference.encode_ordinary("<|endoftext|>")
    assert control.dtype == "uint32" and control.flags.c_contiguous


vocabularies = pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda each: each.name)
COUNTS = {"o200k_harmony": 4699, "gpt2": 4657}
DIGITS = {"o200k_harmony": "a276c33c24ef097a", "gpt2": "4e3a28f7ed10b9c1"}
"""Of the sha256 of each table, which `prove.py` measured."""


@vocabularies
def test_a_table_has_its_ranges_and_the_surrogates(vocabulary):
    unproven = np.flatnonzero(engine.table(engine.UNPROVEN[vocabulary.name]))
    surrogates = np.arange(0xD800, 0xE000)
    rest = np.setdiff1d(unproven, surrogates)
    assert len(unproven) == len(rest) + len(surrogates)
    assert len(rest) == COUNTS[vocabulary.name]
    text = engine.UNPROVEN[vocabulary.name]
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGITS[vocabulary.name]
    assert engine.text_of(rest.tolist()) == engine.UNPROVEN[vocabulary.name]
    assert len(engine.table(engine.UNPROVEN[vocabulary.name])) == 0x110000


def _differ_as_the_table_says(vocabulary: Vocabulary, path: Path, count: int) -> bool:
    codes = prove.sampled_codes(vocabulary, "proven", count)
    unproven = engine.table(engine.UNPROVEN[vocabulary.name])
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
        assert prove.measured(vocabulary, path) == engine.UNPROVEN[vocabulary.name]
        return
    assert _differ_as_the_table_says(vocabulary, path, budget.count(0x110000, 5_000))

"""The pins are tiktoken's own, and `place` publishes exactly the pinned bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiktoken_ext import openai_public

from gristmill.vocabularies.pinned import GPT2, O200K, VOCABULARIES, place
from tests.vocabularies.places import drop


def test_the_pins_are_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def note(address: str, expected_hash: str) -> dict[bytes, int]:
        seen[address.rsplit("/", 1)[1]] = expected_hash
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", note)
    openai_public.o200k_base()
    openai_public.r50k_base()
    assert seen == {vocabulary.file: vocabulary.sha256 for vocabulary in VOCABULARIES}


def test_place_builds_the_artifact(tmp_path: Path, vocabulary_root: Path) -> None:
    for vocabulary, tokens in ((O200K, 199_998), (GPT2, 50_256)):
        out = tmp_path / vocabulary.name
        summary = place(vocabulary, drop(vocabulary_root, vocabulary), out)
        assert summary.tokens == tokens
        assert summary.bytes == vocabulary.bytes == (out / vocabulary.relative).stat().st_size
        assert list(summary.files) == [vocabulary.relative]
        assert [p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()] == [
            vocabulary.relative
        ]
        with pytest.raises(FileExistsError):
            place(vocabulary, drop(vocabulary_root, vocabulary), out)

"""The pins are tiktoken's own, and `place` publishes exactly the pinned bytes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from tiktoken_ext import openai_public

from gristmill.contract import BadInput
from gristmill.synth import show as shown_tokens
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.render.documents import Renderer
from gristmill.vocabularies import encode, find
from gristmill.vocabularies.pinned import (
    GPT2,
    O200K,
    VOCABULARIES,
    MissingVocabulary,
    place,
    read_verified,
)
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


SHARD = Path("synth_harmony_shard_00.parquet")
CALLS: dict[str, Callable[[Path], object]] = {
    "read_verified": lambda path: read_verified(GPT2, path),
    "build_kd_shard": lambda path: build_kd_shard(SHARD, path.parent / "out", KDConfig(path)),
    "load_harmony": lambda path: find.load_harmony(path.parent),
    "load_harmony_file": find.load_harmony_file,
    "load_gpt2": lambda path: find.load_gpt2(path.parent),
    "encoder": lambda path: encode.encoder(O200K, path).encode(["a"]),
    "find_encoder": lambda path: encode.find_encoder(O200K, path.parent),
    "Renderer": lambda path: Renderer(path).read("{}"),
    "show": lambda path: shown_tokens.messages([1], [0], [0], [(0, 1)], path),
    "place": lambda path: place(O200K, path, path.parent / "out"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_vocabulary_names_the_command_that_gets_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("O200K_HARMONY_VOCAB_PATH", "TIKTOKEN_ENCODINGS_BASE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(MissingVocabulary, match="run `gristmill tokenizers`"):
        CALLS[name](tmp_path / "absent")
    assert not [*tmp_path.iterdir()]


def test_a_row_is_not_shown_without_a_vocabulary(tmp_path: Path) -> None:
    row = {"synth_id": "a", "messages_json": '{"messages": []}'}
    with pytest.raises(MissingVocabulary, match="run `gristmill tokenizers`"):
        shown_tokens.harmony_row(tmp_path / SHARD, 0, row, tmp_path / "absent")


def test_a_vocabulary_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"\(Is a directory\): run `gristmill tokenizers`") as caught:
        read_verified(O200K, tmp_path)
    assert not isinstance(caught.value, MissingVocabulary)
    with pytest.raises(MissingVocabulary) as absent:
        read_verified(O200K, tmp_path / "absent")
    copy = pickle.loads(pickle.dumps(absent.value))
    assert (type(copy), str(copy)) == (type(absent.value), str(absent.value))

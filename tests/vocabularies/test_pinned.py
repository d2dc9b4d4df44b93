"""The pins are tiktoken's own, and `place` publishes exactly the pinned bytes."""

import hashlib
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tiktoken_ext import openai_public

from gristmill.contract import BadInput
from gristmill.synth import show as shown_tokens
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.render.documents import Renderer
from gristmill.vocabularies import encode, pinned, placing
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import (
    GPT2,
    O200K,
    VOCABULARIES,
    MissingVocabulary,
    find,
    load_harmony_file,
    place,
    read_verified,
)
from tests.vocabularies.places import drop


def test_the_pins_are_tiktokens_own(monkeypatch):
    seen = {}

    def note(address: str, expected_hash: str) -> dict[bytes, int]:
        seen[address.rsplit("/", 1)[1]] = expected_hash
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", note)
    openai_public.o200k_base()
    openai_public.r50k_base()
    assert seen == {vocabulary.file: vocabulary.sha256 for vocabulary in VOCABULARIES}


def test_place_builds_the_artifact(tmp_path, vocabulary_root):
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
    "build_kd_shard": lambda path: build_kd_shard(str(SHARD), f"{path.parent}/out", KDConfig(path)),
    "load_harmony_file": pinned.load_harmony_file,
    "encoder": lambda path: encode.encoder(O200K, path).encode(["a"]),
    "find_encoder": lambda path: encode.find_encoder(O200K, path.parent),
    "Renderer": lambda path: Renderer(path).read("{}"),
    "show": lambda path: shown_tokens.messages([1], [0], [0], [(0, 1)], path),
    "place": lambda path: place(O200K, path, path.parent / "out"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_vocabulary_names_the_command_that_gets_it(name, tmp_path, monkeypatch):
    for variable in ("O200K_HARMONY_VOCAB_PATH", "TIKTOKEN_ENCODINGS_BASE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(MissingVocabulary, match="run `gristmill tokenizers`"):
        CALLS[name](tmp_path / "absent")
    assert not [*tmp_path.iterdir()]


def test_a_row_is_not_shown_without_a_vocabulary_that_can_be_read(tmp_path):
    row = {"synth_id": "a", "messages_json": '{"messages": []}'}
    with pytest.raises(MissingVocabulary, match="run `gristmill tokenizers`"):
        shown_tokens.harmony_row(tmp_path / SHARD, 0, row, tmp_path / "absent")
    with pytest.raises(BadInput, match=r"\(Is a directory\): run `gristmill tokenizers`") as caught:
        read_verified(O200K, tmp_path)
    assert not isinstance(caught.value, MissingVocabulary)
    with pytest.raises(MissingVocabulary) as absent:
        read_verified(O200K, tmp_path / "absent")
    copy = pickle.loads(pickle.dumps(absent.value))
    assert (type(copy), str(copy)) == (type(absent.value), str(absent.value))


def test_the_order_of_places(tmp_path, vocabulary_root, monkeypatch):
    data = drop(vocabulary_root, O200K).read_bytes()
    places = [
        tmp_path / "named" / "any.name",
        tmp_path / "base" / O200K.file,
        tmp_path / "tokenizer" / O200K.relative,
        drop(tmp_path, O200K),
    ]
    for path in places:
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    assert find(O200K, tmp_path) == places[2]
    monkeypatch.setenv("TIKTOKEN_ENCODINGS_BASE", str(tmp_path / "base"))
    assert find(O200K, tmp_path) == places[1]
    monkeypatch.setenv("O200K_HARMONY_VOCAB_PATH", str(places[0]))
    assert find(O200K, tmp_path) == places[0]
    assert load_harmony_file(find(O200K, tmp_path)).encode("hello world") == [24912, 2375]
    assert os.environ["TIKTOKEN_ENCODINGS_BASE"] == str(tmp_path / "base")
    places[0].unlink()
    with pytest.raises(BadInput, match="O200K_HARMONY_VOCAB_PATH names this file"):
        find(O200K, tmp_path)
    monkeypatch.undo()
    places[2].unlink()
    assert find(O200K, tmp_path) == places[3]


@pytest.mark.parametrize("damage", ["short", "long", "changed", "empty"])
def test_a_wrong_file_is_refused_not_passed_over(tmp_path, vocabulary_root, damage):
    data = drop(vocabulary_root, GPT2).read_bytes()
    good = drop(tmp_path, GPT2)
    good.parent.mkdir(parents=True)
    good.write_bytes(data)
    bad = tmp_path / "tokenizer" / "gpt2" / "r50k_base.tiktoken"
    bad.parent.mkdir(parents=True)
    wrong = {
        "short": data[:-1],
        "long": data + b"IA== 50256\n",
        "changed": data[:1000] + bytes([data[1000] ^ 1]) + data[1001:],
        "empty": b"",
    }[damage]
    bad.write_bytes(wrong)
    for use in (partial(find, GPT2), placing.fetch):
        with pytest.raises(BadInput) as caught:
            use(tmp_path)
        assert caught.value.file == str(bad)
        assert hashlib.sha256(wrong).hexdigest() in caught.value.rule
        assert GPT2.sha256 in caught.value.rule


def test_encodings_load_offline_and_give_known_ids(vocabulary_root):
    harmony = load_harmony_file(find(O200K, vocabulary_root))
    assert harmony.encode("hello world") == [24912, 2375]
    assert harmony.encode("<|start|>", allowed_special={"<|start|>"}) == [200006]
    assert "TIKTOKEN_ENCODINGS_BASE" not in os.environ
    gpt2 = tiktoken_encoding(GPT2, find(GPT2, vocabulary_root))
    assert gpt2.encode_ordinary("Hello world") == [15496, 995]
    assert len(gpt2.encode_ordinary("<|endoftext|>")) > 1

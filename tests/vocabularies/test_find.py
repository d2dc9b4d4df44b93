"""The order of places, and that a wrong file is an error in every place."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.vocabularies import fetch
from gristmill.vocabularies.find import find, load_gpt2, load_harmony
from gristmill.vocabularies.pinned import GPT2, O200K
from tests.vocabularies.places import drop


def test_the_order_of_places(
    tmp_path: Path, vocabulary_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert load_harmony(tmp_path).encode("hello world") == [24912, 2375]
    assert os.environ["TIKTOKEN_ENCODINGS_BASE"] == str(tmp_path / "base")
    places[0].unlink()
    with pytest.raises(BadInput, match="O200K_HARMONY_VOCAB_PATH names this file"):
        find(O200K, tmp_path)
    monkeypatch.undo()
    places[2].unlink()
    assert find(O200K, tmp_path) == places[3]


@pytest.mark.parametrize("damage", ["short", "long", "changed", "empty"])
def test_a_wrong_file_is_refused_not_passed_over(
    tmp_path: Path, vocabulary_root: Path, damage: str
) -> None:
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
    for use in (load_gpt2, partial(find, GPT2), fetch.fetch):
        with pytest.raises(BadInput) as caught:
            use(tmp_path)
        assert caught.value.file == str(bad)
        assert hashlib.sha256(wrong).hexdigest() in caught.value.rule
        assert GPT2.sha256 in caught.value.rule


def test_encodings_load_offline_and_give_known_ids(vocabulary_root: Path) -> None:
    harmony = load_harmony(vocabulary_root)
    assert harmony.encode("hello world") == [24912, 2375]
    assert harmony.encode("<|start|>", allowed_special={"<|start|>"}) == [200006]
    assert "TIKTOKEN_ENCODINGS_BASE" not in os.environ
    gpt2 = load_gpt2(vocabulary_root)
    assert gpt2.encode_ordinary("Hello world") == [15496, 995]
    assert gpt2.eot_token == 50256
    assert gpt2.n_vocab == 50257
    assert len(gpt2.encode_ordinary("<|endoftext|>")) > 1

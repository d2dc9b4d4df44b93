"""Encodings load offline from verified files and give known ids."""

from __future__ import annotations

import os
from pathlib import Path

from gristmill.vocabularies.load import load_gpt2, load_harmony


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

"""Artifacts of one split, written by the builders without publishing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import AlignConfig, TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.vocabularies.pinned import GPT2
from tests.reasoning.normalized_files import write

RECORDS = [
    {"question": "Two and two?", "answer": "2+2 = <<2+2=4>>4\n#### 4"},
    {
        "question": "A <b> | `c`? 𝄞",
        "answer": "It’s 1.\n#### 1",
        "cot": "Step 1: See.\nStep 2: Say.",
    },
    {"question": " ", "answer": ""},
    {"question": "Nothing?", "answer": ""},
    {"question": "One and two?", "answer": "1+2 = <<1+2=3>>3\n#### 3"},
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """A data root with the test split of gsm8k: records, shards and alignment."""
    root = tmp_path_factory.mktemp("built")
    place = root / "tokenizer" / GPT2.relative
    place.parent.mkdir(parents=True)
    place.symlink_to(vocabulary_root / "drops/tokenizers" / GPT2.file)
    jsonl = write(root / names.NORMALIZED / names.normalized("gsm8k", "test"), RECORDS)
    shards = root / names.TOKENIZED
    shards.parent.mkdir(parents=True)
    config = TokenizeConfig(place, seq_len=16, tokens_per_shard=32)
    tokenize(jsonl, shards, config)
    align(jsonl, shards, root / names.ALIGNMENT, AlignConfig(place))
    return root

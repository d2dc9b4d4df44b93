"""The law of texts compares every example with its record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.reasoning.format import names
from gristmill.reasoning.laws import shard_texts
from gristmill.reasoning.laws.shard_texts import text_laws
from gristmill.vocabularies import compare
from gristmill.vocabularies.pinned import GPT2
from gristmill.vocabularies.tokenizer_file import file_of_pinned
from tests.reasoning import small_shards
from tests.reasoning.normalized_files import numbered, write
from tests.reasoning.small_shards import SmallShards


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> SmallShards:
    """Shards of several blocks of the law."""
    return small_shards.build(tmp_path_factory.mktemp("built"), vocabulary_root, records=60)


def found(shards: SmallShards, sampled: bool = False) -> list[str]:
    tokenizer = file_of_pinned(GPT2, shards.config.vocabulary)
    args = (shards.tokenized, "gsm8k__train", shards.normalized, tokenizer)
    return [f"{each.where}: {each.found}" for each in text_laws(*args, sampled=sampled)]


@pytest.mark.parametrize("sampled", [False, True])
def test_what_the_builder_writes_breaks_no_law(built: SmallShards, sampled: bool) -> None:
    assert found(built, sampled) == []


def write_records(shards: SmallShards, records: list[dict[str, Any]]) -> None:
    write(shards.normalized / names.normalized("gsm8k", "train"), records)


def with_record(place: int, record: dict[str, Any]) -> Callable[[list[dict[str, Any]]], None]:
    return lambda records: records.__setitem__(place, record)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (with_record(7, {"question": "another"}), "index.jsonl:7: text_sha256 is not that"),
        (with_record(5, {"question": "no longer empty"}), "lacks record 5, which has a text"),
        (lambda records: records.pop(), "index.jsonl:55: belongs to no record"),
        (lambda records: records.append({"question": "more"}), "lacks record 60"),
    ],
)
def test_another_record_breaks_the_law(
    copied: SmallShards, change: Callable[[list[dict[str, Any]]], None], problem: str
) -> None:
    records = numbered(60)
    change(records)
    write_records(copied, records)
    (violation,) = found(copied)
    assert problem in violation


def test_other_tokens_of_the_same_length_break_the_law(copied: SmallShards) -> None:
    meta = copied.metas()[0]
    copied.change_tensor(meta, lambda data: data.__setitem__(slice(0, 4), b"\1\0\0\0"))
    assert found(copied) == [
        "gsm8k/train/index.jsonl:1: its tokens are not those of its text and 50256"
    ]


def test_extras_that_the_record_lacks_break_the_law(copied: SmallShards) -> None:
    lines = [{**line, "extras": {"difficulty": "hard"}} for line in copied.lines()[:1]]
    rest = copied.index.read_bytes().split(b"\n", 1)[1]
    copied.index.write_bytes(json.dumps(lines[0]).encode() + b"\n" + rest)
    assert found(copied) == ["gsm8k/train/index.jsonl:1: its extras are not those of its record"]


def test_a_sample_has_the_first_example_and_those_of_the_seed(
    copied: SmallShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = numbered(60)
    for place in (7, 8):
        records[place] = {"question": "another"}
    write_records(copied, records)
    # Record 5 has no text, so record 8 is example 7.
    sample = [3, 7, 20]
    monkeypatch.setattr(compare, "sampled", lambda *_: np.array(sample))
    assert len(found(copied, sampled=True)) == 2, "all are looked at once one is wrong"
    sample[1] = 8
    assert found(copied, sampled=True) == []
    assert len(found(copied)) == 2
    records[0] = {"question": "another"}
    write_records(copied, records)
    assert len(found(copied, sampled=True)) == 3
    write_records(copied, records[:15])
    assert "belongs to no record" in found(copied, sampled=True)[-1]


def test_a_sample_has_examples_of_every_block(
    copied: SmallShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks: list[int] = []

    def sampled(_: str, first: int, count: int) -> np.ndarray:
        blocks.append(first)
        return np.array([count - 1] if len(blocks) == 2 else [], dtype=np.int64)

    monkeypatch.setattr(shard_texts, "_BLOCK", 10)
    monkeypatch.setattr(compare, "sampled", sampled)
    assert found(copied, sampled=True) == []
    assert blocks == [0, 10, 20, 30, 40, 50]
    records = numbered(60)
    records[21] = {"question": "another"}
    write_records(copied, records)
    blocks.clear()
    assert len(found(copied, sampled=True)) == 1


def test_files_that_are_gone_or_damaged_are_named(copied: SmallShards) -> None:
    copied.index.write_bytes(b'{"example_id": "gsm8k_train_000000"}\n')
    assert "is no line of an index" in found(copied)[0]
    copied.index.unlink()
    assert "index.jsonl" in found(copied)[0]

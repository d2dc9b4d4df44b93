"""Token shards of other programs: metas with the keys of the contract, files of any torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.reasoning.format.published import shard_splits
from gristmill.reasoning.laws.other_shards import other_shard_laws
from tests.reasoning.foreign_shards import foreign, tensor

SHARD = "mine/train/shard_{:05d}"


def _write(folder: Path, number: int, shape: tuple[int, int], **other: Any) -> None:
    """Write a shard with its meta; other: entries of the meta that differ."""
    path, ids = folder / SHARD.format(number), tensor(shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    foreign(path.with_suffix(".pt"), ids)
    meta = {
        "dataset": "mine",
        "split": "train",
        "seq_len": shape[1],
        "num_sequences": shape[0],
        "token_count": ids.size,
        "shard_index": number,
        "path": f"{SHARD.format(number)}.pt",
        "sha256": hashlib.sha256(ids.tobytes()).hexdigest(),
    }
    path.with_suffix(".meta.json").write_text(json.dumps(meta | other))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    _write(tmp_path, 0, (4, 8))
    _write(tmp_path, 1, (4, 8))
    _write(tmp_path, 2, (1, 8))
    return tmp_path


def found(folder: Path) -> list[str]:
    return [
        str(each).replace(f"{folder}/", "") for each in other_shard_laws(folder, "mine", "train")
    ]


def test_good_shards_of_any_corpus_break_no_law(shards: Path) -> None:
    assert shard_splits(shards) == [("mine", "train")]
    assert found(shards) == []


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no meta": (
        lambda folder: (folder / f"{SHARD.format(1)}.meta.json").unlink(),
        "mine/train/shard_00001.meta.json: files: is missing, other files of it are there",
    ),
    "no tensor": (
        lambda folder: (folder / f"{SHARD.format(1)}.pt").unlink(),
        "mine/train/shard_00001.pt: files: is missing, other files of it are there",
    ),
    "no JSON": (
        lambda folder: (folder / f"{SHARD.format(1)}.meta.json").write_text("{"),
        "mine/train/shard_00001: readable: mine/train/shard_00001.meta.json: is no meta file of a "
        "shard: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    "a key is missing": (
        lambda folder: (folder / f"{SHARD.format(1)}.meta.json").write_text('{"split": "train"}'),
        "mine/train/shard_00001: readable: mine/train/shard_00001.meta.json: is no meta file of a "
        "shard: it needs dataset, split, seq_len, num_sequences, token_count, shard_index, path, "
        "sha256",
    ),
    "no tensor file": (
        lambda folder: (folder / f"{SHARD.format(1)}.pt").write_bytes(b"PK"),
        "mine/train/shard_00001: readable: mine/train/shard_00001.pt: ",
    ),
    "sha256": (
        lambda folder: _write(folder, 1, (4, 8), sha256="0" * 64),
        "mine/train/shard_00001.pt: sha256: the tensor has ",
    ),
    "shape": (
        lambda folder: _write(folder, 1, (4, 8), num_sequences=2, seq_len=16),
        "mine/train/shard_00001.pt: shape: is (4, 8), its meta file says (2, 16)",
    ),
    "tokens": (
        lambda folder: _write(folder, 1, (4, 8), token_count=31),
        "mine/train/shard_00001: readable: mine/train/shard_00001.meta.json: token_count is 31, "
        "expected 32",
    ),
    "number": (
        lambda folder: _write(folder, 1, (4, 8), shard_index=7),
        "mine/train/shard_00001: readable: mine/train/shard_00001.meta.json: shard_index 7 is not "
        "the number in its name",
    ),
    "a number is a text": (
        lambda folder: _write(folder, 1, (4, 8), seq_len="8"),
        "mine/train/shard_00001: readable: mine/train/shard_00001.meta.json: seq_len is '8', "
        "expected a number from 0",
    ),
    "a number is negative": (
        lambda folder: _write(folder, 1, (4, 8), seq_len=-8),
        "mine/train/shard_00001: readable: mine/train/shard_00001.meta.json: seq_len is -8, "
        "expected a number from 0",
    ),
    "not full": (
        lambda folder: _write(folder, 1, (3, 8)),
        "mine/train/shard_00001.pt: full: has not as many sequences as the first shard",
    ),
    "seq_len": (
        lambda folder: _write(folder, 2, (4, 4)),
        "mine/train/shard_00002.pt: full: seq_len is not that of the first shard",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_named_with_its_rule(shards: Path, damage: str) -> None:
    change, expected = DAMAGES[damage]
    change(shards)
    lines = found(shards)
    assert lines[0].startswith(expected), lines
    assert {line.partition(": ")[0].partition(".")[0] for line in lines} == {
        expected.partition(": ")[0].partition(".")[0]
    }


@pytest.mark.parametrize(("token", "ids"), [(50_257, "0 to 50257"), (-1, "-1 to 0")])
def test_an_id_outside_of_the_vocabulary_is_named(tmp_path: Path, token: int, ids: str) -> None:
    _write(tmp_path, 0, (1, 2))
    wrong = np.array([[0, token]], np.int32)
    foreign(tmp_path / f"{SHARD.format(0)}.pt", wrong)
    assert found(tmp_path)[0] == (
        f"mine/train/shard_00000.pt: ids: ids from {ids}, allowed 0 to 50256"
    )

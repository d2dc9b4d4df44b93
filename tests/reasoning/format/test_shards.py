"""Meta files and the manifest: bytes, round trip, and what is refused."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import shards
from gristmill.reasoning.format.shards import CONTRACT, OTHERS, Meta

META = Meta(
    dataset="gsm8k",
    split="train",
    seq_len=8,
    num_sequences=3,
    token_count=24,
    shard_index=4,
    path="gsm8k/train/shard_00004.pt",
    sha256="a" * 64,
    source_files=({"path": "reasoning/raw/gsm8k/train.jsonl", "sha256": "b" * 64},),
    rank=0,
    world_size=2,
    file_sha256="c" * 64,
    text_tokens=20,
    eos_tokens=3,
    pad_tokens=1,
    first_example="gsm8k_train_000000",
    last_example="gsm8k_train_000004",
    tokenizer_sha256="d" * 64,
)


def as_dict(meta: Meta) -> dict[str, Any]:
    values = {**asdict(meta), "source_files": list(meta.source_files)}
    return {name: values[name] for name in values if meta.tokenizer or name not in OTHERS}


def write_manifest(root: Path, metas: list[Meta]) -> bytes:
    octets = b"".join(shards.manifest_entries(metas))
    (root / "manifest.json").write_bytes(octets)
    return octets


def test_a_meta_has_the_keys_of_the_contract_and_a_manifest_is_a_list(tmp_path: Path) -> None:
    octets = shards.meta_bytes(META)
    assert octets == json.dumps(as_dict(META), indent=2).encode()
    assert tuple(json.loads(octets))[:8] == CONTRACT
    (tmp_path / "x.meta.json").write_bytes(octets)
    assert shards.read_meta(tmp_path / "x.meta.json") == META
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="is no list of shards"):
        shards.read_manifest(tmp_path)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_manifest_is_the_list_of_all_metas(tmp_path: Path, count: int) -> None:
    metas = [replace(META, path=f"gsm8k/train/shard_{k:05d}.pt") for k in range(count)]
    octets = write_manifest(tmp_path, metas)
    assert octets == json.dumps([as_dict(meta) for meta in metas], indent=2).encode()
    assert shards.read_manifest(tmp_path) == metas


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([], "its keys must be dataset, split"),
        ({}, "its keys must be"),
        (dict(reversed(as_dict(META).items())), "its keys must be"),
        ({**as_dict(META), "rank": "0"}, "rank: must be of type int"),
        ({**as_dict(META), "rank": True}, "rank: must be of type int"),
        ({**as_dict(META), "path": None}, "path: must be of type str"),
        ({**as_dict(META), "source_files": {}}, "source_files: must be a list"),
        ({**as_dict(META), "source_files": [{"path": "a"}]}, "source_files: must be a list"),
        (
            {**as_dict(META), "source_files": [{"path": "a", "sha256": 1}]},
            "source_files: must be a list",
        ),
    ],
)
def test_another_meta_file_is_refused(tmp_path: Path, values: Any, rule: str) -> None:
    (tmp_path / "x.meta.json").write_text(json.dumps(values))
    with pytest.raises(BadInput, match=rule):
        shards.read_meta(tmp_path / "x.meta.json")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(BadInput, match="is no"):
        shards.read_meta(tmp_path / "manifest.json")
    with pytest.raises(BadInput, match="is no JSON"):
        shards.read_manifest(tmp_path)


@pytest.mark.parametrize("numbers", [[1, 0], [0, 0]])
def test_a_manifest_in_another_order_is_refused(tmp_path: Path, numbers: list[int]) -> None:
    write_manifest(tmp_path, [replace(META, path=f"a/shard_{k:05d}.pt") for k in numbers])
    with pytest.raises(BadInput, match="not in ascending order"):
        shards.read_manifest(tmp_path)


def test_metas_of_a_split_come_in_the_order_of_their_shards(tmp_path: Path) -> None:
    folder = tmp_path / "gsm8k" / "train"
    folder.mkdir(parents=True)
    for number in (3, 1):
        meta = replace(META, shard_index=number, path=f"gsm8k/train/shard_{number:05d}.pt")
        (folder / f"shard_{number:05d}.meta.json").write_bytes(shards.meta_bytes(meta))
    assert [meta.shard_index for meta in shards.metas(tmp_path, "gsm8k", "train")] == [1, 3]

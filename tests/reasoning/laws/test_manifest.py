"""The laws of the manifest compare it with all splits, and its builder obeys them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.reasoning.builders.manifest import all_metas, write_manifest
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.format.shards import manifest_entries, read_manifest
from gristmill.reasoning.laws.manifest import manifest_laws
from tests.reasoning.normalized_files import numbered, write
from tests.reasoning.small_shards import SmallShards

PARTITIONS = ["wiqa__train", "gsm8k__train", "gsm8k__test"]


@pytest.fixture
def several(copied: SmallShards, tmp_path: Path) -> SmallShards:
    """Three splits, one of them without a shard."""
    add_split(copied, tmp_path, "gsm8k", "test", 7)
    add_split(copied, tmp_path, "wiqa", "train", 0)
    return copied


def add_split(
    shards: SmallShards, scratch: Path, corpus: str, split: str, count: int, **config: object
) -> None:
    jsonl = write(shards.normalized / corpus / f"{split}.jsonl", numbered(count), corpus)
    out = scratch / f"{corpus}_{split}"
    tokenize(jsonl, out, replace(shards.config, **config))
    target = shards.tokenized / corpus / split
    target.parent.mkdir(exist_ok=True)
    (out / corpus / split).rename(target)


def found(shards: SmallShards, folder: Path) -> list[str]:
    violations = manifest_laws(folder, "manifest", shards.tokenized)
    return [f"{each.law}: {each.where}: {each.found}" for each in violations]


def test_the_manifest_lists_all_metas_by_path(several: SmallShards, tmp_path: Path) -> None:
    summary = write_manifest(several.tokenized, tmp_path / "out", PARTITIONS)

    octets = (tmp_path / "out" / "manifest.json").read_bytes()
    metas = sorted(several.tokenized.rglob("shard_*.meta.json"), key=lambda path: path.as_posix())
    listed = [json.loads(path.read_bytes()) for path in metas]
    assert octets == json.dumps(listed, indent=2).encode()
    assert listed[0]["path"] == "gsm8k/test/shard_00000.pt"
    index = b"".join(
        (several.tokenized / name / "index.jsonl").read_bytes()
        for name in ("gsm8k/test", "gsm8k/train", "wiqa/train")
    )
    assert (tmp_path / "out" / "index.jsonl").read_bytes() == index
    assert (summary.splits, summary.shards) == (3, len(metas))
    assert summary.examples == index.count(b"\n") == summary.eos_tokens
    assert summary.sequences == sum(meta["num_sequences"] for meta in listed)
    assert summary.text_tokens == sum(meta["text_tokens"] for meta in listed)
    assert len(read_manifest(tmp_path / "out")) == summary.shards
    assert found(several, tmp_path / "out") == []


def test_a_manifest_without_shards_is_an_empty_list(copied: SmallShards, tmp_path: Path) -> None:
    add_split(copied, tmp_path, "wiqa", "train", 0)
    write_manifest(copied.tokenized, tmp_path / "out", ["wiqa__train"])
    assert (tmp_path / "out" / "manifest.json").read_bytes() == b"[]"
    assert (tmp_path / "out" / "index.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "value"),
    [("world_size", 3), ("seq_len", 4)],
)
def test_shards_of_two_configs_have_no_manifest(
    copied: SmallShards, tmp_path: Path, name: str, value: int
) -> None:
    add_split(copied, tmp_path, "gsm8k", "test", 7, **{name: value})
    rule = f"gsm8k/train/shard_00000.pt has {name} {getattr(copied.config, name)}"
    with pytest.raises(GristmillError, match=re.escape(rule)):
        write_manifest(copied.tokenized, tmp_path / "out", ["gsm8k__train", "gsm8k__test"])
    metas = all_metas(copied.tokenized, [("gsm8k", "test"), ("gsm8k", "train")])
    (tmp_path / "manifest.json").write_bytes(b"".join(manifest_entries(metas)))
    assert any(each.startswith("one kind of shards") for each in found(copied, tmp_path))


def test_shards_of_another_vocabulary_have_no_manifest(copied: SmallShards, tmp_path: Path) -> None:
    copied.write_meta(replace(copied.metas()[-1], tokenizer_sha256="0" * 64))
    with pytest.raises(GristmillError, match="has tokenizer_sha256 0000"):
        write_manifest(copied.tokenized, tmp_path / "out", ["gsm8k__train"])


def test_no_split_no_manifest(copied: SmallShards, tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="no split is published"):
        write_manifest(copied.tokenized, tmp_path / "out", [])
    assert not (tmp_path / "out").exists()


def test_an_index_that_is_gone_is_named(copied: SmallShards, tmp_path: Path) -> None:
    copied.index.unlink()
    with pytest.raises(BadInput, match=r"gsm8k/train/index\.jsonl: is gone"):
        write_manifest(copied.tokenized, tmp_path / "out", ["gsm8k__train"])


@pytest.mark.parametrize("change", ["source", "other", "longer", "shorter", "no file"])
@pytest.mark.parametrize(
    ("name", "law"), [("manifest.json", "inventory"), ("index.jsonl", "index")]
)
def test_another_manifest_or_index_breaks_a_law(
    several: SmallShards, tmp_path: Path, name: str, law: str, change: str
) -> None:
    write_manifest(several.tokenized, tmp_path / "out", PARTITIONS)
    path = tmp_path / "out" / name
    octets = path.read_bytes()
    if change == "source" and law == "index":
        several.index.write_bytes(several.index.read_bytes()[:-1])
    elif change == "source":
        several.write_meta(replace(several.metas()[3], file_sha256="0" * 64))
    elif change == "no file":
        path.unlink()
    else:
        last = {"other": octets.replace(b"1", b"2", 1), "longer": octets + b"\n"}
        path.write_bytes(last.get(change, octets[:-1]))
    (violation,) = found(several, tmp_path / "out")
    assert violation.startswith((f"{law}: {name}", f"readable: {name}"))


def test_a_folder_without_splits_breaks_a_law(copied: SmallShards, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "manifest.json").write_bytes(b"[]")
    (empty / "index.jsonl").write_bytes(b"")
    assert [each.law for each in manifest_laws(empty)] == ["splits"]

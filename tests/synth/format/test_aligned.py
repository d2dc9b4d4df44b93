"""Prefixes, digests and cache folders of datasets that have no provenance record."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from gristmill.synth.format import megatron


def write_datasets(tokens: Path, lengths: list[int]) -> None:
    for name, dtype in megatron.DTYPES.items():
        with megatron.IndexedWriter(megatron.sibling(tokens, name), dtype) as writer:
            writer.add(np.zeros(sum(lengths), dtype=dtype), np.array(lengths, dtype=np.int32))


def test_a_sibling_has_the_suffix_of_its_dataset() -> None:
    tokens = Path("tokens_kd/train/shard_00_tokens")
    assert megatron.sibling(tokens, "span") == Path("tokens_kd/train/shard_00_span")
    assert megatron.sibling(tokens, "tokens") == tokens


def test_without_a_record_the_digest_is_that_of_the_three_index_files(tmp_path: Path) -> None:
    tokens = tmp_path / "kd/train/shard_00_tokens"
    write_datasets(tokens, [3, 2])
    joined = ""
    for name in ("tokens", "lossmask", "span"):
        index = tokens.with_name(f"shard_00_{name}.idx")
        joined += hashlib.sha256(index.read_bytes()).hexdigest()
    assert megatron.digest(tokens) == hashlib.sha256(joined.encode()).hexdigest()


@pytest.mark.parametrize("name", ["shard_00_tokens", "part_tokens", "shard_00_tokens_tokens"])
def test_without_a_record_the_cache_is_beside_the_dataset(tmp_path: Path, name: str) -> None:
    tokens = tmp_path / "kd/train" / name
    assert megatron.cache_folder(tokens) == tmp_path / "cache/synth/kd/train" / name


def test_a_missing_dataset_is_refused_with_its_prefix(tmp_path: Path) -> None:
    tokens = tmp_path / "kd/train/shard_00_tokens"
    with pytest.raises(RuntimeError, match=r"shard_00_tokens: the dataset is not complete"):
        megatron.digest(tokens)

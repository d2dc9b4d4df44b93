"""Laws of exports: damage of every format is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.provenance import Record
from tests.reasoning.exported_root import FORMATS, broken, build_dataset
from tests.reasoning.published_root import built


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    root = tmp_path_factory.mktemp("data")
    build_dataset(root)
    return root, built(root, "reasoning/exports", "mine", formats=FORMATS, file_tokens=400)


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0\0")


def _other_dim(path: Path) -> None:
    index = json.loads(path.read_bytes())
    index["chunks"][0]["dim"] += 1
    path.write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("llm.c/tokens_train_000000.bin", _longer),
        ("litdata/train/chunk-0-0.bin", _longer),
        ("litdata/train/index.json", _other_dim),
        ("nanochat/shard_00001.parquet", Path.unlink),
        ("nanochat/shard_00001.parquet", _longer),
    ],
)
def test_damage_is_found(
    name: str, damage: Callable[[Path], object], published: tuple[Path, Record], tmp_path: Path
) -> None:
    root = tmp_path / "data"
    shutil.copytree(published[0], root)
    assert broken(root, published[1], shared=False) == []
    damage(root / "reasoning/exports/mine" / name)
    (found,) = broken(root, published[1], shared=False)
    assert found.startswith("format: ")

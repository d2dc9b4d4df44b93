"""Laws of exports: damage of every format, and another dataset, is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.provenance import Record
from tests.reasoning.exported_root import FORMATS, broken, build_dataset, built

NOT_OURS = "documents: does not hold the documents of the dataset: build it again"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    root = tmp_path_factory.mktemp("data")
    build_dataset(root)
    return root, built(root, "reasoning/exports", "mine", formats=FORMATS, file_tokens=400)


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0\0")


def _other_token(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _other_dim(path: Path) -> None:
    index = json.loads(path.read_bytes())
    index["chunks"][0]["dim"] += 1
    path.write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("name", "damage", "law"),
    [
        ("llm.c/tokens_train_000000.bin", _longer, "format: "),
        ("llm.c/tokens_train_000000.bin", _other_token, NOT_OURS),
        ("llm.c/tokens_train_000001.bin", Path.unlink, NOT_OURS),
        ("litdata/train/chunk-0-0.bin", _longer, "format: "),
        ("litdata/train/chunk-0-0.bin", _other_token, NOT_OURS),
        ("litdata/train/index.json", _other_dim, "format: "),
        ("litdata/test/index.json", Path.unlink, NOT_OURS),
        ("nanochat/shard_00001.parquet", Path.unlink, "format: "),
        ("nanochat/shard_00001.parquet", _longer, "format: "),
    ],
)
def test_damage_is_found(
    name: str,
    damage: Callable[[Path], object],
    law: str,
    published: tuple[Path, Record],
    tmp_path: Path,
) -> None:
    root = tmp_path / "data"
    shutil.copytree(published[0], root)
    assert broken(root, published[1], shared=False) == []
    damage(root / "reasoning/exports/mine" / name)
    found = broken(root, published[1], shared=False)
    assert len(found) == 1
    assert found[0].startswith(law)


def test_files_of_other_texts_are_found(published: tuple[Path, Record], tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(published[0], root)
    folder = root / "reasoning/exports/mine/nanochat"
    one, other = sorted(folder.iterdir())
    one.rename(folder / "shard_00002.parquet")
    assert other.name < "shard_00002.parquet"
    assert broken(root, published[1], shared=False) == [NOT_OURS, NOT_OURS]

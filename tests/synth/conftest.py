"""Fixtures of the SYNTH tests: a vocabulary, the real data, generated raw files and a shard."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.run.parts import PartStore
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.kd_shard import KDSummary, build_kd_shard
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.samples import write_drop
from gristmill.vocabularies.pinned import O200K, find
from tests.paths import REAL_DATA
from tests.synth.damage import FRACTION

KDBuild = Callable[..., KDSummary]


@pytest.fixture(scope="session")
def vocabulary(vocabulary_root: Path) -> Path:
    return find(O200K, vocabulary_root)


@pytest.fixture(scope="session")
def real() -> Path:
    folder = REAL_DATA / "synth"
    if not folder.is_dir():
        pytest.skip(f"no real SYNTH data at {folder} (GRISTMILL_REAL_DATA)")
    return folder


@pytest.fixture(scope="session")
def raw_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Ten raw files of 60 rows. Of four shards the first two take three files."""
    return write_drop(tmp_path_factory.mktemp("drop"), files=10)


@pytest.fixture(scope="session")
def harmony(tmp_path_factory: pytest.TempPathFactory, raw_files: list[Path]) -> Path:
    """Shard 00 of the sample drop, in small row groups."""
    out = tmp_path_factory.mktemp("harmony") / "00"
    to_harmony(raw_files, out, 0, HarmonyConfig(rows_per_group=20))
    return out / "synth_harmony_shard_00.parquet"


@pytest.fixture(scope="session")
def kd_root(harmony: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Megatron datasets of shard 00, only for reading."""
    out = tmp_path_factory.mktemp("kd") / "kd"
    build_kd_shard(harmony, out, KDConfig(vocabulary, FRACTION))
    return out


@pytest.fixture
def kd_build(vocabulary: Path, tmp_path: Path) -> KDBuild:
    """Builds the datasets of a shard in a folder of this name; the rest is of the config."""

    def build(
        shard: Path, out: str, *fraction: float, parts: PartStore | None = None, **config: Any
    ) -> KDSummary:
        return build_kd_shard(
            shard, tmp_path / out, KDConfig(vocabulary, *fraction, **config), parts
        )

    return build


@pytest.fixture
def kd_copy(kd_root: Path, tmp_path: Path) -> Path:
    """A copy of these datasets, to be damaged."""
    return Path(shutil.copytree(kd_root, tmp_path / "kd"))


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes a Harmony shard with rows of (synth_id, messages_json)."""

    def write(rows: list[tuple[Any, Any]], row_group_size: int = 1000) -> Path:
        ids, messages = zip(*rows, strict=True) if rows else ((), ())
        table = pa.table(
            {
                "messages_json": pa.array(messages, pa.string()),
                "synth_id": pa.array(ids, pa.string()),
            }
        )
        path = tmp_path / "synth_harmony_shard_07.parquet"
        pq.write_table(table, path, row_group_size=row_group_size)
        return path

    return write

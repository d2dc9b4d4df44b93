"""The real drops, packed once for all tests that ask for them."""

from pathlib import Path

import pytest

from gristmill.macroxue import PackConfig, pack
from tests.paths import REAL_DATA

REAL = REAL_DATA / "macroxue"


@pytest.fixture(scope="session")
def real_packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """d6_v1 as aligned48 in one file, d7_v1 as packed46 in shards of 10,000 rows."""
    if not REAL.is_dir():
        pytest.skip(f"the real drops are not at {REAL}")
    root = tmp_path_factory.mktemp("packs")
    pack(REAL / "d6_v1", root / "d6_v1", PackConfig())
    pack(
        REAL / "d7_v1",
        root / "d7_v1",
        PackConfig(layout="packed46", shard_rows=10_000, enum_form="object"),
    )
    return {name: root / name for name in ("d6_v1", "d7_v1")}

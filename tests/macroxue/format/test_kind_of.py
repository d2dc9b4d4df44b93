"""kind_of: packs, pools, value sidecars and foreign packs, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.macroxue import MergeConfig, ValueConfig, merge, value_sidecar
from gristmill.macroxue.format.kind_of import kind_of
from tests.macroxue.games import play, write_pack

GAMES = [play(seed, 20) for seed in range(3)]
SELF_PLAY = np.zeros(5, [("run_id", "<u8"), ("step_idx", "<u4"), ("exps", "u1", (16,))])
LEGACY = np.zeros(5, [("run_id", "<u4"), ("step_index", "<u4"), ("board", "<u8")])


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_pack(tmp_path / "pack", GAMES)


def test_packs_pools_and_values_have_their_kinds(pack: Path, tmp_path: Path) -> None:
    shards = write_pack(tmp_path / "shards", GAMES, shard_rows=7, layout="packed46")
    merge([pack, shards], tmp_path / "pool", MergeConfig())
    value_sidecar(pack, tmp_path / "values", ValueConfig())
    value_sidecar(shards, tmp_path / "value_shards", ValueConfig())
    kinds = [kind_of(tmp_path / name) for name in ("pack", "shards", "pool")]
    assert kinds == ["pack", "pack", "pool"]
    assert kind_of(tmp_path / "values") == kind_of(tmp_path / "value_shards") == "values"


def test_other_folders_have_no_kind(tmp_path: Path) -> None:
    assert kind_of(tmp_path) is None
    assert kind_of(tmp_path / "absent") is None
    (tmp_path / "metadata.db").touch()
    assert kind_of(tmp_path) is None
    (tmp_path / "values.json").touch()
    assert kind_of(tmp_path) is None
    (tmp_path / "steps.npy").mkdir()
    assert kind_of(tmp_path) is None


@pytest.mark.parametrize("name", ["steps.npy", "valuation_types.json"])
def test_a_pack_that_lacks_a_file_is_still_a_pack(pack: Path, name: str) -> None:
    (pack / name).unlink()
    assert kind_of(pack) == "pack"


def test_a_pack_needs_its_database(pack: Path) -> None:
    (pack / "metadata.db").write_bytes(b"no database")
    assert kind_of(pack) == "pack"
    (pack / "metadata.db").unlink()
    assert kind_of(pack) is None


@pytest.mark.parametrize(("rows", "kind"), [(SELF_PLAY, "self_play"), (LEGACY, "legacy")])
@pytest.mark.parametrize("name", ["steps.npy", "steps-000001.npy"])
def test_foreign_rows_decide_before_the_tables(
    pack: Path, tmp_path: Path, rows: np.ndarray, kind: str, name: str
) -> None:
    (pack / "steps.npy").unlink()
    np.save(pack / name, rows)
    assert kind_of(pack) == kind
    (tmp_path / "rows").mkdir()
    np.save(tmp_path / "rows" / name, rows)
    assert kind_of(tmp_path / "rows") == kind

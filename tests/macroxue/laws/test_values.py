"""Laws of value sidecars: wrong columns and files are violations that name the row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.macroxue.build.values import value_sidecar
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.rows import VALUE_ROW_DTYPE
from gristmill.macroxue.laws.values import value_laws
from tests.macroxue.games import play, write_pack

GAMES = [play(seed, 90 - 7 * seed) for seed in range(6)]


@pytest.mark.parametrize(
    ("column", "law"),
    [
        ("step_index", "values_aligned"),
        ("run_id", "values_aligned"),
        ("reward", "values_recomputed"),
        ("reward_scaled", "values_recomputed"),
        ("return_raw", "values_recomputed"),
        ("return_scaled", "values_recomputed"),
    ],
)
def test_laws_find_every_wrong_column(tmp_path: Path, column: str, law: str) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    path = tmp_path / "v" / "values.npy"
    octets = bytearray(path.read_bytes())
    rows = np.frombuffer(octets, VALUE_ROW_DTYPE, offset=256)
    assert rows[120]["run_id"] == 1
    rows[column][120] += 1
    path.write_bytes(octets)
    (violation,) = value_laws(tmp_path / "v", pack)
    assert violation.law == law
    assert "run" in violation.where
    assert "(row 120)" in violation.where
    rows[column][120] -= 1
    rows["reward"][120] = np.nan
    path.write_bytes(octets)
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == [
        "values_finite",
        "values_recomputed",
    ]


def test_laws_of_files(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    other = write_pack(tmp_path / "q", GAMES, shard_rows=100)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    assert [v.law for v in value_laws(tmp_path / "v", other)] == ["values_shards"]
    (tmp_path / "v" / "values.json").write_text('{"gamma": 1}')
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["files_open"]
    (tmp_path / "v" / "values.npy").unlink()
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["files_open"]

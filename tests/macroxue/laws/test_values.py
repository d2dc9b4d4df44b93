"""Laws of value sidecars: wrong columns and files are violations that name the row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.macroxue.builders.values import value_sidecar
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format.rows import VALUE_ROW_DTYPE
from gristmill.macroxue.laws import values as laws
from gristmill.macroxue.laws.values import value_laws
from tests.macroxue.games import play, step_rows, write_pack

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
    (violation,) = value_laws(tmp_path / "v", pack, recomputed=True)
    assert violation.law == law
    assert "run" in violation.where
    assert "(row 120)" in violation.where
    assert len(list(value_laws(tmp_path / "v", pack))) == (law != "values_recomputed")
    rows[column][120] -= 1
    rows["reward"][120] = np.nan
    path.write_bytes(octets)
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["values_finite"]


@pytest.mark.filterwarnings("ignore:overflow")
def test_returns_beyond_float32_name_the_settings(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig(gamma=40))
    (violation,) = value_laws(tmp_path / "v", pack)
    assert violation.law == "values_finite"
    assert violation.found.startswith("return_raw inf, beyond float32: choose a smaller gamma")


def test_laws_of_files(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    other = write_pack(tmp_path / "q", GAMES, shard_rows=100)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    assert [v.law for v in value_laws(tmp_path / "v", other)] == ["values_shards"]
    (tmp_path / "v" / "values.json").write_text('{"gamma": 1}')
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["files_open"]
    (tmp_path / "v" / "values.npy").unlink()
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["files_open"]


def test_the_first_and_the_last_run_are_always_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    path = tmp_path / "v" / "values.npy"
    whole = path.read_bytes()
    last = sum(len(one.boards) for one in GAMES) - 1
    for row in (0, last):
        octets = bytearray(whole)
        np.frombuffer(octets, VALUE_ROW_DTYPE, offset=256)["reward"][row] += 1
        path.write_bytes(octets)
        for runs in (2, 64):
            monkeypatch.setattr(laws, "SAMPLE_RUNS", runs)
            (violation,) = value_laws(tmp_path / "v", pack, recomputed=True)
            assert violation.law == "values_recomputed"
            assert f"(row {row})" in violation.where


def test_files_have_the_numbers_of_the_steps(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    (tmp_path / "v" / "values.npy").rename(tmp_path / "v" / "values-00000.npy")
    assert [v.law for v in value_laws(tmp_path / "v", pack)] == ["values_shards"]


def test_a_pack_with_a_move_above_3_is_a_violation(tmp_path: Path) -> None:
    value_sidecar(write_pack(tmp_path / "p", GAMES), tmp_path / "v", ValueConfig())
    steps = step_rows(GAMES)
    steps["move_dir"][5] = 4
    changed = write_pack(tmp_path / "q", GAMES, steps=steps)
    (violation,) = value_laws(tmp_path / "v", changed, recomputed=True)
    assert (violation.law, violation.where) == ("values_recomputed", "run 0")

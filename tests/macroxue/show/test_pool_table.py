"""The table of a pool's origin: members, percentages and raw drops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import MergeConfig, merge
from gristmill.macroxue.show.pool_table import origin_table
from tests.macroxue.games import play, write_pack

GAMES = [play(seed, 50) for seed in range(4)]


def test_each_member_has_a_line_and_all_have_the_total(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "a", GAMES[:3])
    b = write_pack(tmp_path / "b", GAMES[3:])
    lines = [json.dumps({"run_id": run, "drop": f"d{run % 2}"}) + "\n" for run in range(3)]
    (a / "trace.jsonl").write_text("".join(lines))
    merge([a, b], tmp_path / "pool", MergeConfig())
    best = [max(one.score for one in games) for games in (GAMES[:3], GAMES[3:])]
    table = origin_table(tmp_path / "pool").splitlines()
    assert table[2:] == [
        f"| `a` | 3 | 150 | 75.0% | 0–2 | 0 | {best[0]:,} | `d0`, `d1` |",
        f"| `b` | 1 | 50 | 25.0% | 3–3 | 150 | {best[1]:,} | not traced |",
        "| all | 4 | 200 | 100.0% |  |  |  |  |",
    ]


def test_more_than_eight_drops_are_counted(tmp_path: Path) -> None:
    games = [play(seed, 5) for seed in range(10)]
    a = write_pack(tmp_path / "a", games)
    lines = [json.dumps({"run_id": run, "drop": f"d{run}"}) + "\n" for run in range(10)]
    (a / "trace.jsonl").write_text("".join(lines))
    merge([a, write_pack(tmp_path / "b", GAMES[:1])], tmp_path / "pool", MergeConfig())
    assert "`d7` and 2 more |" in origin_table(tmp_path / "pool")


def test_a_pack_is_no_pool(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it is not a pool"):
        origin_table(write_pack(tmp_path / "a", GAMES))

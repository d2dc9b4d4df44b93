"""Sample drops: the player, the rules of the game, the raw form, equal bytes for equal seeds."""

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import Violation
from gristmill.macroxue.builders.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.laws import game_laws
from gristmill.macroxue.rules import game as moves
from gristmill.macroxue.samples import Dice, play, write_drop

ROW = re.compile(
    rb'\{"seed":\d+,(?:"depth":\d+,"game_index":\d+,)?"step_index":\d+,"max_rank":\d+,'
    rb'"move":"(?:up|left|right|down)",(?:"move_index":[0-3],)?'
    rb'(?:"valuation_type":"(?:search|tuple11|tuple10)",)?"valuation":-?\d+\.\d{6},'
    rb'"board":\[\d+(?:,\d+){15}\],"branch_evs":\{"up":N,"left":N,"right":N,"down":N\}'
    rb'(?:,"trace":\{.*\})?\}'.replace(b"N", rb"(?:null|-?\d+\.\d{6})")
)

META_KEYS = (
    *("seed", "depth", "game_index", "steps_file", "num_moves", "score"),
    *("max_tile", "max_rank", "sum_tile", "seconds"),
)


@pytest.fixture(scope="module")
def drops(sample_drops: Path) -> list[Path]:
    return sorted((sample_drops / "drops/macroxue").iterdir())


def read(meta_path: Path) -> tuple[dict[str, Any], list[bytes]]:
    octets = meta_path.read_bytes()
    if meta_path.name.endswith(".gz"):
        octets = gzip.decompress(octets)
    stem = meta_path.name.split(".")[0]
    lines = gzip.decompress((meta_path.parent / f"{stem}.jsonl.gz").read_bytes()).splitlines()
    return json.loads(octets), lines


def metas(drop: Path) -> list[Path]:
    return sorted(path for path in drop.iterdir() if ".meta.json" in path.name)


def test_expected_values_mark_the_legal_moves_and_the_move_is_the_best(drops):
    counts: dict[str, int] = {}
    for drop in drops:
        for path in metas(drop):
            steps = [json.loads(line) for line in read(path)[1]]
            legal = moves.legal_moves(np.array([step["board"] for step in steps], np.uint8))
            for step, bits in zip(steps, legal.tolist(), strict=True):
                kind = step.get("valuation_type", "search")
                counts[kind] = counts.get(kind, 0) + 1
                evs = step["branch_evs"]
                assert list(evs) == ["up", "left", "right", "down"]
                for bit, name in enumerate(moves.DIRECTIONS):
                    if bits >> bit & 1:
                        assert evs[name] is not None
                        assert kind == "search" or 0 <= evs[name] <= 1
                    else:
                        assert evs[name] is (None if kind == "search" else evs[name])
                        assert kind == "search" or evs[name] == 0.0
                assert evs[step["move"]] == step["valuation"]
                assert step["valuation"] == max(ev for ev in evs.values() if ev is not None)
    assert set(counts) == {"search", "tuple11", "tuple10"}
    assert min(counts.values()) > 50


def test_files_have_the_raw_form_of_the_capture_script(drops):
    modern, legacy = drops
    assert {path.suffix for path in metas(modern)} == {".json"}
    assert {path.suffix for path in metas(legacy)} == {".json", ".gz"}
    for drop in drops:
        for path in sorted(drop.glob("*.gz")):
            assert path.read_bytes()[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
        for path in metas(drop):
            meta, lines = read(path)
            assert tuple(meta) == META_KEYS
            assert all(ROW.fullmatch(line) for line in lines)
            assert all((b'"trace"' in line) == (drop is legacy) for line in lines)
            stem = path.name.split(".")[0]
            assert meta["steps_file"].endswith(f"/{stem}.jsonl.gz")
            first = int(re.search(r"seed(\d{10})_game", stem)[1])  # type: ignore[index]
            assert meta["seed"] == first + meta["game_index"]
    untyped = [b'"valuation_type":"search"' not in b"".join(read(p)[1]) for p in metas(legacy)]
    assert any(untyped)
    assert not all(untyped)


def test_bytes_depend_on_the_arguments_alone(tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write_drop(tmp_path / name / "drop", seed, 3, 40, 6, legacy=True)
    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / name / "drop").iterdir()}
        for name in "abc"
    ]
    assert contents[0] == contents[1]
    assert set(contents[0]).isdisjoint(contents[2])
    assert len(contents[0]) == 6


@pytest.mark.slow
def test_without_a_limit_a_game_ends_where_no_move_is_left(tmp_path):
    write_drop(tmp_path / "drop", 272350804, 1, None, 6)
    meta, lines = read(metas(tmp_path / "drop")[0])
    assert meta["num_moves"] == len(lines) > 300
    # The last tile came after the last step, on the one cell that leaves no move.
    step = json.loads(lines[-1])
    board = np.array([step["board"]], np.uint8)
    after = moves.move_towards(board, moves.DIRECTIONS.index(step["move"]))[0][0]
    tile = int(meta["sum_tile"] - sum(1 << rank for rank in after.tolist() if rank)) // 2
    ends = []
    for cell in np.flatnonzero(after == 0):
        final = after.copy()
        final[cell] = tile
        ends.append(moves.legal_moves(final[None])[0] == 0)
    assert any(ends)


@pytest.mark.parametrize(("games", "max_moves"), [(0, 10), (1, 0)])
def test_empty_drops_are_refused(tmp_path, games, max_moves):
    with pytest.raises(ValueError, match="at least one"):
        write_drop(tmp_path / "drop", 1, games, max_moves, 6)


def test_the_shipped_games_keep_the_rules_and_have_nothing_noteworthy(drops, tmp_path):
    for drop in drops:
        summary = pack(drop, tmp_path / drop.name, PackConfig(workers=1))
        assert 3000 <= summary.rows <= 6000 and summary.warnings == 0
        noted: list[Violation] = []
        assert list(game_laws(tmp_path / drop.name, noted)) == noted == []
        for path in metas(drop):
            meta, lines = read(path)
            assert meta["max_tile"] == 1 << meta["max_rank"]
            assert json.loads(lines[-1])["step_index"] == len(lines) - 1


def test_a_game_ends_at_its_limit_and_the_player_beats_random_moves(drops):
    stuck = [1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 1]
    starts = np.array([stuck, [1, 1, *[0] * 14], [1, 1, *[0] * 14]], np.uint8)
    rounds = list(play(starts, [Dice(seed) for seed in range(3)], [9, 3, 0]))
    assert [[game for game, _ in steps] for steps in rounds] == [[1], [1], [1]]
    steps = [step for steps in rounds for _, step in steps]
    for before, after in pairwise(steps):
        assert before.after == after.board
    assert starts[1].tolist() == [1, 1, *[0] * 14]
    scores = [(read(path)[0]["score"], read(path)[0]["num_moves"]) for path in metas(drops[0])]
    # Random play dies after some 120 moves with about 1,100 points.
    assert min(count for _, count in scores) > 250
    assert max(score for score, _ in scores) > 10_000

"""The value sidecar against the rule in pure Python, its laws, and the score of real games."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.builders import values
from gristmill.macroxue.builders.values import value_sidecar
from gristmill.macroxue.config import ValueConfig
from gristmill.macroxue.format import rows
from gristmill.macroxue.format.files import Run
from gristmill.macroxue.format.rows import STEP_FORMATS, VALUE_FORMAT
from gristmill.macroxue.laws import value_laws
from gristmill.macroxue.read import stream as step_stream
from gristmill.macroxue.rules.discount import discounted
from gristmill.macroxue.rules.game import LEFT
from tests.macroxue.games import Game, all_rows, play, run_table, step_rows, write_pack
from tests.macroxue.rules.test_game import move_one_board

GAMES = [play(seed, 90 - 7 * seed) for seed in range(6)]


def all_values(folder: Path) -> np.ndarray:
    return np.concatenate([rows.open_values(file) for file in rows.value_files(folder)])


def expected_values(boards: list[list[int]], moves: list[int], config: ValueConfig) -> list[tuple]:
    """Reward, scaled reward, return and h(return) of one run, each rounded to float32."""
    out = []
    later = 0.0
    for board, move in zip(reversed(boards), reversed(moves), strict=True):
        reward = float(np.float32(move_one_board(board, move)[1]))
        later = reward + config.gamma * later
        squeezed = math.sqrt(later + 1) - 1 + config.epsilon * later
        out.append((reward, reward * config.reward_scale, later, squeezed))
    return [tuple(np.float32(value) for value in row) for row in reversed(out)]


@pytest.mark.parametrize("config", [ValueConfig(), ValueConfig(0.5, 0.01, 0.1), ValueConfig(0.0)])
@pytest.mark.parametrize(("layout", "shard_rows"), [("aligned48", 0), ("packed46", 100)])
def test_every_bit_is_what_the_rule_gives(tmp_path, config, layout, shard_rows):
    pack = write_pack(tmp_path / "p", GAMES, layout=layout, shard_rows=shard_rows)  # type: ignore[arg-type]
    summary = value_sidecar(pack, tmp_path / "v", config)
    recorded = all_values(tmp_path / "v")
    steps = all_rows(pack)
    assert (recorded["run_id"] == steps["run_id"]).all()
    assert (recorded["step_index"] == steps["step_index"]).all()
    expected = [
        row
        for one in GAMES
        for row in expected_values(one.boards.tolist(), one.moves.tolist(), config)
    ]
    for column, name in enumerate(("reward", "reward_scaled", "return_raw", "return_scaled")):
        assert recorded[name].tolist() == [float(row[column]) for row in expected]
    assert summary.rows == len(steps)
    assert (summary.scores_matched, summary.scores_differ) == (6, 0)
    assert summary.reward_sum == sum(one.score for one in GAMES)
    assert list(value_laws(tmp_path / "v", pack)) == []


def test_files_follow_the_steps(tmp_path):
    single = write_pack(tmp_path / "a", GAMES[:1])
    sharded = write_pack(tmp_path / "b", GAMES, shard_rows=[100, 1, 50, 284])
    one_shard = write_pack(tmp_path / "c", GAMES[:1], shard_rows=1000)
    for pack, expected in (
        (single, [("values.npy", 90)]),
        (sharded, [(f"values-0000{i}.npy", n) for i, n in enumerate((100, 1, 50, 284))]),
        (one_shard, [("values-00000.npy", 90)]),
    ):
        out = tmp_path / f"v{pack.name}"
        summary = value_sidecar(pack, out, ValueConfig())
        notes = {name: note.rows for name, note in summary.files.items() if note.rows is not None}
        assert notes == dict(expected)
        assert sorted(file.name for file in out.iterdir()) == sorted([*notes, "values.json"])
        for name, count in expected:
            octets = (out / name).read_bytes()
            assert octets.startswith(VALUE_FORMAT.header(count))
            assert len(octets) == 256 + 24 * count
    settings = json.loads((tmp_path / "va" / "values.json").read_text())
    assert settings == {**dataclasses.asdict(ValueConfig()), "rows": 90, "runs": 1}


def test_values_are_those_of_the_page_and_a_move_that_changes_nothing_earns_nothing(tmp_path):
    # docs/formats/macroxue.md#returns: rewards 4, 8, 16 with gamma .5; h at 12 and 16 with eps .1.
    rewards = np.array([4, 8, 16, 4], np.float32)
    returns = discounted(rewards, np.array([3, 0, 1]), 0.5)
    assert returns.tolist() == [12, 16, 16, 4]
    assert values.h(returns[:3], 0.1).astype(np.float32).tolist() == [
        float(np.float32(x)) for x in (3.8055512, 4.7231054, 4.7231054)
    ]
    assert values.h(np.array([-12.0]), 0.1)[0] == -values.h(np.array([12.0]), 0.1)[0]
    board = np.zeros((1, 16), np.uint8)
    board[0, [0, 1]] = [1, 2]
    one = Game(1, board, np.array([LEFT], np.uint8), 0, 4)
    pack = write_pack(tmp_path / "p", [one])
    summary = value_sidecar(pack, tmp_path / "v", ValueConfig())
    assert summary.idle_moves == 1
    assert all_values(tmp_path / "v")["reward"].tolist() == [0]


@pytest.mark.parametrize("most", [1, 50, 1000])
def test_bytes_do_not_depend_on_how_runs_are_grouped(tmp_path, monkeypatch, most):
    pack = write_pack(tmp_path / "p", [*GAMES, play(9, 80, [17, 16, *[0] * 13, 1])], shard_rows=64)
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    batches = step_stream.StepStream.batches
    monkeypatch.setattr(
        step_stream.StepStream,
        "batches",
        lambda self, *, whole_runs: batches(self, whole_runs=whole_runs, most=most),
    )
    value_sidecar(pack, tmp_path / "w", ValueConfig())
    assert all_values(tmp_path / "v").tobytes() == all_values(tmp_path / "w").tobytes()


def test_high_tiles_truly_and_as_the_reference_does(tmp_path):
    board = [17, 16, *[0] * 13, 1]
    moves = np.array([LEFT], np.uint8)
    # 17 and 16 side by side move nothing on the left, but the 1 slides.
    one = Game(1, np.array([board], np.uint8), moves, 0, 1 << 17)
    pack = write_pack(tmp_path / "p", [one])
    true = value_sidecar(pack, tmp_path / "t", ValueConfig())
    reference = value_sidecar(pack, tmp_path / "r", ValueConfig(compat="reference"))
    assert (true.reward_sum, true.scores_matched, true.rows_solved) == (0, 1, 1)
    assert (reference.reward_sum, reference.scores_differ) == (1 << 17, 1)
    assert true.rows_above_65536 == reference.rows_above_65536 == 1
    assert list(value_laws(tmp_path / "t", pack)) == []
    assert list(value_laws(tmp_path / "r", pack)) == []


@pytest.mark.parametrize(
    ("column", "row", "value", "rule"),
    [
        ("step_index", 95, 3, r"run 1: step_index 3 after 4 \(row 95\)"),
        ("move_dir", 7, 4, r"row 7 \(run 0, step 7\) has move_dir 4"),
        ("run_id", 172, 0, "run 0 has 90 steps by metadata.db, but 91 rows"),
    ],
)
def test_rows_without_a_return_are_refused(tmp_path, column, row, value, rule):
    steps = step_rows(GAMES[:2])
    steps[column][row] = value
    pack = write_pack(tmp_path / "p", GAMES[:2], steps=steps)
    with pytest.raises(BadInput, match=rule):
        value_sidecar(pack, tmp_path / "v", ValueConfig())


def test_an_empty_shard_is_refused_and_equal_steps_are_taken(tmp_path):
    pack = write_pack(tmp_path / "p", GAMES, shard_rows=500)
    (pack / "steps-00001.npy").write_bytes(STEP_FORMATS["aligned48"].header(0))
    with pytest.raises(BadInput, match="holds no rows"):
        value_sidecar(pack, tmp_path / "v", ValueConfig())
    (tmp_path := tmp_path / "next").mkdir()
    steps = step_rows(GAMES[:1])
    steps["step_index"][3] = 2
    runs = [*run_table(GAMES[:1]), Run(1, 1, 0, 0, 2)]
    pack = write_pack(tmp_path / "p", [], steps=steps, runs=runs)
    summary = value_sidecar(pack, tmp_path / "v", ValueConfig())
    assert (summary.runs, summary.scores_matched, summary.scores_differ) == (2, 1, 0)


@pytest.mark.real
def test_real_games_earn_their_score(tmp_path, real_packs):
    # The original invents merges in two games, worth 12.2 and 9.7 million points
    # (docs/formats/macroxue.md#true-ranks).
    for name, above, invented in (("d6_v1", 0, 0), ("d7_v1", 642, 21_889_024)):
        true = value_sidecar(real_packs[name], tmp_path / f"{name}t", ValueConfig())
        reference = value_sidecar(
            real_packs[name], tmp_path / f"{name}r", ValueConfig(compat="reference")
        )
        assert (true.scores_matched, true.scores_differ) == (20, 0)
        assert (true.rows_above_65536, true.rows_unknown) == (above, 0)
        assert reference.reward_sum - true.reward_sum == invented
        assert reference.scores_differ == (2 if invented else 0)
        assert list(value_laws(tmp_path / f"{name}t", real_packs[name])) == []
        if not invented:
            same = [all_values(tmp_path / f"{name}{form}").tobytes() for form in "tr"]
            assert same[0] == same[1]

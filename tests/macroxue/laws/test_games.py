"""Laws of play: real and played games hold them, every kind of breach is named by run and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gristmill import families
from gristmill.contract import Violation
from gristmill.laws import MOST
from gristmill.macroxue import MergeConfig, merge
from gristmill.macroxue.format.files import Run, write_lines
from gristmill.macroxue.format.rows import Rows, decode_boards, pack_boards
from gristmill.macroxue.laws.files import pack_laws, pool_laws
from gristmill.macroxue.laws.games import game_laws, game_notes
from gristmill.macroxue.read.stream import Batch, StepStream
from gristmill.macroxue.rules import game as moves
from gristmill.macroxue.rules.scores import board_eval
from gristmill.run.progress import Progress, Report
from tests.macroxue.games import Game, cut, play, run_table, step_rows, write_pack

HIGH = [17, 16, *[0] * 13, 1]
GAMES = [play(seed, 150) for seed in range(5)] + [play(7, 150, HIGH)]


@cache
def first_steps() -> np.ndarray:
    """The first step of each game, and the end."""
    return np.cumsum([0, *(len(one.boards) for one in GAMES)])


@pytest.mark.parametrize("shard_rows", [0, 77])
def test_played_games_hold_every_law(tmp_path: Path, shard_rows: int) -> None:
    pack = write_pack(tmp_path / "p", GAMES, shard_rows=shard_rows)
    assert list(game_laws(pack)) == []
    assert [(v.law, v.where) for v in game_notes(pack)] == [("started_late", "run 5")]


def set_board(steps: Rows, row: int, ranks: np.ndarray) -> None:
    steps["board"][row : row + 1], steps["tile_65536_mask"][row : row + 1] = pack_boards(
        ranks[None]
    )
    steps["board_eval"][row] = board_eval(ranks[None])[0]


def ranks_of(steps: Rows, row: int) -> np.ndarray:
    return decode_boards(steps["board"][row : row + 1], steps["tile_65536_mask"][row : row + 1])[0]


def other_move(steps: Rows) -> None:
    """A move that changes nothing: down on a board whose tiles all lie there."""
    stuck = np.zeros(16, np.uint8)
    stuck[12:] = [1, 2, 3, 4]
    set_board(steps, first_steps()[2] + 30, stuck)
    steps["move_dir"][first_steps()[2] + 30] = 1


def second_tile(steps: Rows) -> None:
    board = ranks_of(steps, first_steps()[2] + 1)
    board[np.flatnonzero(board == 0)[0]] = 1
    set_board(steps, first_steps()[2] + 1, board)


def no_tile(steps: Rows) -> None:
    first = GAMES[2].boards[:1], int(GAMES[2].moves[0])
    set_board(steps, first_steps()[2] + 1, moves.move_towards(*first)[0][0])


def change_cell(steps: Rows, tile: bool, rank: int) -> None:
    """Give the second board of run 2 this rank in its first cell with or without a tile."""
    board = moves.move_towards(GAMES[2].boards[:1], int(GAMES[2].moves[0]))[0][0].copy()
    cells = np.flatnonzero((board != 0) == tile)
    assert board[cells[0]] != rank
    board[cells[0]] = rank
    set_board(steps, first_steps()[2] + 1, board)


def large_tile(steps: Rows) -> None:
    change_cell(steps, tile=False, rank=3)


def lost_tile(steps: Rows) -> None:
    change_cell(steps, tile=True, rank=0)


def replaced_tile(steps: Rows) -> None:
    first = moves.move_towards(GAMES[2].boards[:1], int(GAMES[2].moves[0]))[0][0]
    change_cell(steps, tile=True, rank=2 if first.max() == 1 else 1)


def wrong_eval(steps: Rows) -> None:
    steps["board_eval"][first_steps()[2] + 9] += 1


def wrong_eval_high(steps: Rows) -> None:
    steps["board_eval"][first_steps()[5] + 9] += 1


def wrong_eval_first(steps: Rows) -> None:
    steps["board_eval"][first_steps()[5]] += 1


def low_rank(steps: Rows) -> None:
    steps["max_rank"][first_steps()[2] + 60] -= 1


def no_such_move(steps: Rows) -> None:
    steps["move_dir"][first_steps()[2] + 5] = 7


@pytest.mark.parametrize(
    ("change", "law", "where"),
    [
        (other_move, "move_legal", f"run 2 step 30 (row {first_steps()[2] + 30})"),
        (no_such_move, "move_legal", f"run 2 step 5 (row {first_steps()[2] + 5})"),
        (second_tile, "follows", f"run 2 step 1 (row {first_steps()[2] + 1})"),
        (no_tile, "follows", f"run 2 step 1 (row {first_steps()[2] + 1})"),
        (large_tile, "follows", f"run 2 step 1 (row {first_steps()[2] + 1})"),
        (lost_tile, "follows", f"run 2 step 1 (row {first_steps()[2] + 1})"),
        (replaced_tile, "follows", f"run 2 step 1 (row {first_steps()[2] + 1})"),
        (wrong_eval, "board_eval", f"run 2 step 9 (row {first_steps()[2] + 9})"),
        (wrong_eval_high, "board_eval", f"run 5 step 9 (row {first_steps()[5] + 9})"),
        (wrong_eval_first, "board_eval", f"run 5 step 0 (row {first_steps()[5]})"),
        (low_rank, "max_rank", f"run 2 step 60 (row {first_steps()[2] + 60})"),
    ],
)
def test_a_breach_is_named(
    tmp_path: Path, change: Callable[[Rows], None], law: str, where: str
) -> None:
    steps = step_rows(GAMES)
    change(steps)
    violations = list(game_laws(write_pack(tmp_path / "p", GAMES, steps=steps)))
    assert (law, where) in [(v.law, v.where) for v in violations]


def test_a_score_or_tile_that_is_not_earned_is_named(tmp_path: Path) -> None:
    runs = run_table(GAMES)
    changed = {
        1: Run(1, 1, runs[1].steps, runs[1].max_score + 4, runs[1].highest_tile),
        3: Run(3, 3, runs[3].steps, runs[3].max_score, runs[3].highest_tile // 2),
        # A game that starts late may have earned points before, but not fewer.
        5: Run(5, 7, runs[5].steps, runs[5].max_score + 9999, runs[5].highest_tile),
    }
    table = [changed.get(run.id, run) for run in runs]
    violations = list(game_laws(write_pack(tmp_path / "p", GAMES, runs=table)))
    assert [(v.law, v.where) for v in violations] == [("score", "run 1"), ("highest_tile", "run 3")]
    assert f"sum to {GAMES[1].score}, max_score is {GAMES[1].score + 4}" in violations[0].found
    table[5] = Run(5, 7, runs[5].steps, runs[5].max_score - 4, runs[5].highest_tile)
    violations = list(game_laws(write_pack(tmp_path / "q", GAMES, runs=table)))
    assert [v.where for v in violations if v.law == "score"] == ["run 1", "run 5"]
    # A score of 2^64-1 is -1 in the table.
    table[5] = Run(5, 7, runs[5].steps, -1, runs[5].highest_tile)
    violations = list(game_laws(write_pack(tmp_path / "r", GAMES, runs=table)))
    assert [v.where for v in violations if v.law == "score"] == ["run 1"]


@pytest.mark.parametrize(
    ("raw", "origin"),
    [({}, ", of d6/a b.jsonl.gz"), ({"raw_run": 900}, ", run 900 of d6/a b.jsonl.gz")],
)
def test_a_breach_names_the_raw_file_of_its_run(
    tmp_path: Path, raw: dict[str, int], origin: str
) -> None:
    one, later = run_table(GAMES)[:2]
    table = [one, Run(1, 1, later.steps, later.max_score + 4, later.highest_tile)]
    steps = step_rows(GAMES[:2])
    steps["move_dir"][one.steps] = 7
    pack = write_pack(tmp_path / "p", GAMES[:2], runs=table, steps=steps)
    sums = {"meta_bytes": 1, "meta_sha256": "0", "steps_bytes": 1, "steps_sha256": "0"}
    files = {"drop": "d6", "meta": "a b.meta.json", "steps": "a b.jsonl.gz"}
    lines = [
        {"run_id": run.id, **files, **sums, "rows": run.steps, "first_row": 0, **raw}
        for run in table
    ]
    write_lines(pack / "trace.jsonl", lines)
    places = {v.law: v.where for v in game_laws(pack)}
    assert places["score"] == f"run 1{origin}"
    assert places["move_legal"].endswith(f"){origin}")


def test_a_cut_game_is_excused_where_the_pack_says_so(tmp_path: Path) -> None:
    games = [GAMES[0], cut(GAMES[1], 40), GAMES[2]]
    pack = write_pack(tmp_path / "p", games)
    assert [(v.law, v.where) for v in game_laws(pack)] == [("score", "run 1")]
    (pack / "warnings.jsonl").write_text('{"kind":"count_mismatch","run_id":1}\n')
    assert list(game_laws(pack)) == []
    # The pool carries the warning, under the run's new id.
    merge([write_pack(tmp_path / "q", GAMES[3:]), pack], tmp_path / "pool", MergeConfig())
    assert list(game_laws(tmp_path / "pool")) == []
    assert list(pool_laws(tmp_path / "pool")) == []
    assert ("score_differs", "run 4") in [(v.law, v.where) for v in game_notes(tmp_path / "pool")]


def test_a_gap_excuses_what_follows_it(tmp_path: Path) -> None:
    games = [GAMES[0], GAMES[1]]
    keep = np.r_[0:50, 60 : first_steps()[2]]
    steps = step_rows(games)[keep]
    runs = run_table(games)
    runs[0] = Run(0, 0, runs[0].steps - 10, runs[0].max_score, runs[0].highest_tile)
    pack = write_pack(tmp_path / "p", games, steps=steps, runs=runs)
    assert list(game_laws(pack)) == []
    assert [(v.law, v.where) for v in game_notes(pack)] == [
        ("gaps", "run 0"),
        ("score_differs", "run 0"),
    ]


def test_a_wrong_board_eval_is_reported_once_of_packs_and_pools(tmp_path: Path) -> None:
    steps = step_rows(GAMES)
    wrong_eval(steps)
    pack = write_pack(tmp_path / "p", GAMES, steps=steps)
    merge([pack, write_pack(tmp_path / "q", GAMES)], tmp_path / "pool", MergeConfig())
    for asset, folder in (("macroxue/pack", pack), ("macroxue/pool", tmp_path / "pool")):
        violations = [
            v.where
            for v in families.check(asset, families.Subject(folder))
            if v.law == "board_eval"
        ]
        assert violations == [f"run 2 step 9 (row {first_steps()[2] + 9})"]


@pytest.mark.parametrize(
    ("source", "has_record", "is_judged"),
    [
        ("steps of other programs", True, True),
        ("macroxue self-play logs, steps of other programs", False, False),
        ("", False, True),
        ("", True, False),
    ],
)
def test_values_of_other_programs_are_those_of_moves_that_their_boards_allow(
    tmp_path: Path, source: str, has_record: bool, is_judged: bool
) -> None:
    steps = step_rows(GAMES)
    boards = np.concatenate([one.boards for one in GAMES])
    none = (moves.legal_moves(boards)[:, None] >> np.arange(4)) & 1 == 0
    own = np.flatnonzero(none.any(axis=1))
    steps["ev_legal"], steps["branch_evs"][none] = 15, -1
    steps["ev_legal"][[5, 9]] &= ~(np.uint8(1) << steps["move_dir"][[5, 9]])
    steps["ev_legal"][9] = 0
    session = {"drops/source": source} if source else {}
    pack = write_pack(tmp_path / "p", GAMES, steps=steps, session=session)
    subject = families.Subject(pack, has_record=has_record)
    found = [v for v in families.check("macroxue/pack", subject) if v.law.startswith("value_")]
    places = [f"run {steps['run_id'][row]} step {steps['step_index'][row]}" for row in own[:3]]
    expected = [*places, "run 0 step 5", "further places"] if is_judged else []
    assert [v.where.partition(" (")[0] for v in found] == expected
    assert not found or found[-1].found == f"{len(own) - 3} more"


def test_what_cannot_be_opened_is_a_violation(tmp_path: Path) -> None:
    for look in (game_laws, game_notes):
        assert [v.law for v in look(tmp_path)] == ["files_open"]


def test_unknown_ranks_are_noted_not_judged(tmp_path: Path) -> None:
    tie = np.zeros(16, np.uint8)
    tie[[1, 4, 15]] = [16, 17, 1]
    one = Game(1, tie[None], np.array([2], np.uint8), 0, 1 << 17)
    pack = write_pack(tmp_path / "p", [one])
    assert list(game_laws(pack)) == []
    assert ("ranks_unknown", "run 0 step 0 (row 0)") in [(v.law, v.where) for v in game_notes(pack)]


def test_rows_of_unknown_ranks_are_judged_by_their_mask_alone(tmp_path: Path) -> None:
    tie = np.zeros(16, np.uint8)
    tie[[1, 4, 12, 13, 15]] = [16, 17, 1, 1, 1]
    low = np.array([1, 1, *[0] * 14], np.uint8)
    # The second board does not follow, and the first move earns more than the score.
    one = Game(1, np.stack([tie, low]), np.array([2, 2], np.uint8), 3, 1 << 17)
    assert list(game_laws(write_pack(tmp_path / "p", [one]))) == []
    steps = step_rows([one])
    steps["max_rank"][0] = 15
    short = Game(1, one.boards, one.moves, 3, 1 << 15)
    violations = list(game_laws(write_pack(tmp_path / "q", [short], steps=steps)))
    assert [v.law for v in violations] == ["max_rank", "highest_tile"]


@pytest.mark.parametrize(
    ("row", "laws"), [([16, 16, 1, 2], []), ([16, 1, 16, 2], ["move_legal"])], ids=str
)
def test_a_move_that_unknown_ranks_may_allow_is_legal(
    tmp_path: Path, row: list[int], laws: list[str]
) -> None:
    """Four tiles without max_rank have too many choices: which of them are equal is not known."""
    board = np.array([*row, 1, 16, 2, 16, 3, 4, 5, 6, 4, 5, 6, 7], np.uint8)
    one = Game(1, board[None], np.array([2], np.uint8), 1 << 17, 1 << 17)
    steps = step_rows([one])
    steps["max_rank"] = 0
    pack = write_pack(tmp_path / "p", [one], steps=steps)
    assert [violation.law for violation in game_laws(pack)] == laws
    assert "ranks_unknown" in [violation.law for violation in game_notes(pack)]


@pytest.mark.real
def test_the_real_drops_hold_every_law(tmp_path: Path, real_packs: dict[str, Path]) -> None:
    for name, late in (("d6_v1", 0), ("d7_v1", 5)):
        assert list(pack_laws(real_packs[name])) == []
        assert list(game_laws(real_packs[name])) == []
        assert [v.law for v in game_notes(real_packs[name])] == ["started_late"] * late
    merge(list(real_packs.values()), tmp_path / "pool", MergeConfig(shard_rows=30_000))
    assert list(pool_laws(tmp_path / "pool")) == []
    assert list(game_laws(tmp_path / "pool")) == []


def test_notes_name_evs_that_a_tokenizer_stops_at(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:2])
    steps["ev_legal"][4] = 0
    steps["branch_evs"][4] = 0
    searched = (steps["valuation_type"] == 0) & (steps["ev_legal"] != 15)
    corner = int(np.flatnonzero(searched)[1])
    assert corner != 4
    steps["ev_legal"][corner] = 15
    pack = write_pack(tmp_path / "p", GAMES[:2], steps=steps)
    notes = {(v.law, v.where) for v in game_notes(pack)}
    assert ("chosen_ev", "run 0 step 4 (row 4)") in notes
    assert any(law == "search_legality" and f"(row {corner})" in where for law, where in notes)
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert noted == list(game_notes(pack))


def test_a_pack_without_search_rows_has_notes_too(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES, names=["a", "b", "c"])
    assert [(v.law, v.where) for v in game_notes(pack)] == [("started_late", "run 5")]


@pytest.mark.parametrize("batch_rows", [1, 1 << 17])
def test_laws_note_in_their_own_pass_what_the_notes_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    steps = step_rows(GAMES)
    steps["ev_legal"][:] = 0
    steps["branch_evs"][:] = 0
    pack = write_pack(tmp_path / "p", GAMES, steps=steps)
    passes: list[int] = []
    batches = StepStream.batches

    def counted(self: StepStream, *, whole_runs: bool) -> Iterator[Batch]:
        passes.append(self.rows)
        return batches(self, whole_runs=whole_runs, most=batch_rows)

    monkeypatch.setattr(StepStream, "batches", counted)
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert len(passes) == 1
    assert noted == list(game_notes(pack))
    assert len([note for note in noted if note.law == "chosen_ev"]) == MOST + 1


def test_notes_name_equal_games_and_files_without_the_other_one_of_their_game(
    tmp_path: Path,
) -> None:
    games = [*GAMES[:2], GAMES[1], GAMES[0]]
    pack = write_pack(tmp_path / "p", games)
    lines = [
        '{"drop":"d","kind":"unpaired_log","path":"a/killed.jsonl.gz"}',
        '{"drop":"d","kind":"unpaired_meta","path":"b.meta.json"}',
        '{"drop":"d","kind":"name_not_utf8","path":"c"}',
    ]
    (pack / "warnings.jsonl").write_text("\n".join(lines) + "\n")
    noted: list[Violation] = []
    assert list(game_laws(pack, noted)) == []
    assert noted == list(game_notes(pack))
    same = "the same seed, steps, score and highest tile as run"
    assert noted == [
        Violation("repeated_game", "run 2", f"{same} 1"),
        Violation("repeated_game", "run 3", f"{same} 0"),
        Violation("unpaired_log", "a/killed.jsonl.gz", "a log without its .meta.json"),
        Violation("unpaired_meta", "b.meta.json", "a meta without its .jsonl.gz"),
    ]


def test_the_notes_report_their_progress(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "p", GAMES)
    reports: list[Report] = []
    with Progress(reports.append, every=0).current():
        list(game_notes(pack))
    assert {report.stage for report in reports} == {"game notes"}
    assert reports[-1].done == reports[-1].total == StepStream(pack).rows

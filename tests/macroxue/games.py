"""Played games and packs made of them, for tests that need more than arbitrary rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gristmill.macroxue.format import metadata_db, rows, shards
from gristmill.macroxue.format.valuation_types import EnumForm, write_valuation_types
from gristmill.macroxue.rules import moves as game
from gristmill.macroxue.rules.board_eval import board_eval

NAMES = ("search", "tuple11", "tuple10")


@dataclass(frozen=True)
class Game:
    """boards uint8 [N, 16] of true ranks before each move [N], and what the engine would log."""

    seed: int
    boards: np.ndarray
    moves: np.ndarray
    score: int
    highest_tile: int


def play(seed: int, most: int = 200, start: Sequence[int] | None = None) -> Game:
    """Legal moves at random, a tile of rank 1 or 2 after each, until stuck or `most` moves."""
    random = np.random.default_rng(seed)
    if start is None:
        board = np.zeros(16, np.uint8)
        board[random.choice(16, 2, replace=False)] = 1
    else:
        board = np.array(start, np.uint8)
    boards, moves, score = [], [], 0
    while len(boards) < most:
        legal = int(game.legal_moves(board[None])[0])
        if not legal:
            break
        move = int(random.choice([k for k in range(4) if legal >> k & 1]))
        boards.append(board)
        moves.append(move)
        after, reward, _ = game.move_towards(board[None], move)
        score += int(reward[0])
        board = after[0].copy()
        board[random.choice(np.flatnonzero(board == 0))] = 1 if random.random() < 0.9 else 2
    top = max(int(board.max()), *(int(b.max()) for b in boards))
    return Game(seed, np.array(boards), np.array(moves, np.uint8), score, 1 << top)


def step_rows(games: Sequence[Game], kinds: int = 3) -> rows.Rows:
    """Aligned rows of the games, run ids in order; every fourth row is a tuple row."""
    pieces = []
    for run_id, one in enumerate(games):
        piece = np.zeros(len(one.boards), rows.STEP_ROW_DTYPE)
        piece["run_id"], piece["step_index"] = run_id, np.arange(len(piece))
        piece["board"], piece["tile_65536_mask"] = rows.pack_boards(one.boards)
        piece["board_eval"] = board_eval(one.boards)
        piece["move_dir"], piece["seed"] = one.moves, one.seed
        piece["max_rank"] = one.boards.max(axis=1)
        tuples = np.arange(len(piece)) % 4 == 3
        piece["valuation_type"] = np.where(tuples, 1 + np.arange(len(piece)) % (kinds - 1), 0)
        piece["ev_legal"] = np.where(tuples, 15, game.legal_moves(one.boards))
        legal = (piece["ev_legal"][:, None] >> np.arange(4)) & 1
        piece["branch_evs"] = legal * np.linspace(0.1, 0.9, 4, dtype=np.float32)
        pieces.append(piece)
    return joined(pieces) if pieces else np.zeros(0, rows.STEP_ROW_DTYPE)


def run_table(games: Sequence[Game]) -> list[metadata_db.Run]:
    return [
        metadata_db.Run(i, one.seed, len(one.boards), one.score, one.highest_tile)
        for i, one in enumerate(games)
    ]


def write_pack(
    folder: Path,
    games: Sequence[Game],
    *,
    layout: rows.Layout = "aligned48",
    shard_rows: int | Sequence[int] = 0,
    names: Sequence[str] = NAMES,
    enum_form: EnumForm = "list",
    session: dict[str, str] | None = None,
    steps: rows.Rows | None = None,
    runs: Sequence[metadata_db.Run] | None = None,
) -> Path:
    """A pack of these games without a trace; `steps` and `runs` put others in their place."""
    folder.mkdir(parents=True)
    steps = step_rows(games) if steps is None else steps
    with shards.ShardWriter(folder, rows.STEP_FORMATS[layout], shard_rows) as writer:
        writer.write(rows.to_layout(steps, layout))
    table = run_table(games) if runs is None else runs
    metadata_db.write_metadata(folder / "metadata.db", table, session or {})
    write_valuation_types(folder / "valuation_types.json", names, enum_form)
    return folder


def joined(pieces: Sequence[rows.Rows]) -> rows.Rows:
    """np.concatenate that keeps the padding: by bytes."""
    return np.concatenate([rows.as_bytes(piece) for piece in pieces]).view(pieces[0].dtype)[:, 0]


def all_rows(folder: Path) -> rows.Rows:
    """Every row of a pack, aligned."""
    return joined([rows.to_aligned(shards.open_steps(file)) for file in shards.step_files(folder)])


def cut(one: Game, moves: int) -> Game:
    """The game without its last steps, as a log that was cut; score and tile as they were."""
    return replace(one, boards=one.boards[:moves], moves=one.moves[:moves])

"""Games that are played by the rules, and packs of them, for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gristmill.macroxue.format import rows
from gristmill.macroxue.format.files import EnumForm, Run, write_metadata, write_valuation_types
from gristmill.macroxue.rules.game import board_eval, legal_moves, move_towards

NAMES = ("search", "tuple11", "tuple10")


@dataclass(frozen=True)
class Game:
    """A game: boards uint8 [N, 16] of true ranks, the moves made on them, and facts of the log."""

    seed: int
    boards: np.ndarray
    moves: np.ndarray
    score: int
    highest_tile: int


class _Later(Game):
    """A game that is played when a field of it is read: many tests name games, few need them."""

    def __init__(self, seed: int, most: int, start: Sequence[int] | None) -> None:
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "_rules", (most, start))

    def __getattr__(self, name: str) -> object:
        if name not in Game.__dataclass_fields__:
            raise AttributeError(name)
        for field, value in vars(_play(self.seed, *self._rules)).items():
            object.__setattr__(self, field, value)
        return getattr(self, name)


def play(seed: int, most: int = 200, start: Sequence[int] | None = None) -> Game:
    """Play random legal moves, until none is legal or `most` are made."""
    return _Later(seed, most, start)


def _play(seed: int, most: int, start: Sequence[int] | None) -> Game:
    random = np.random.default_rng(seed)
    if start is None:
        board = np.zeros(16, np.uint8)
        board[random.choice(16, 2, replace=False)] = 1
    else:
        board = np.array(start, np.uint8)
    boards, moves, score = [], [], 0
    while len(boards) < most:
        legal = int(legal_moves(board[None])[0])
        if not legal:
            break
        move = int(random.choice([k for k in range(4) if legal >> k & 1]))
        boards.append(board)
        moves.append(move)
        after, reward, _ = move_towards(board[None], move)
        score += int(reward[0])
        board = after[0].copy()
        board[random.choice(np.flatnonzero(board == 0))] = 1 if random.random() < 0.9 else 2
    top = max(int(board.max()), *(int(b.max()) for b in boards))
    return Game(seed, np.array(boards), np.array(moves, np.uint8), score, 1 << top)


def step_rows(games: Sequence[Game], kinds: int = 3) -> rows.Rows:
    """Aligned rows of the games, run ids in order; every fourth row is a tuple row."""
    games_rows = []
    for run_id, one in enumerate(games):
        rows_of_game = np.zeros(len(one.boards), rows.STEP_ROW_DTYPE)
        rows_of_game["run_id"], rows_of_game["step_index"] = run_id, np.arange(len(rows_of_game))
        rows_of_game["board"], rows_of_game["tile_65536_mask"] = rows.pack_boards(one.boards)
        rows_of_game["board_eval"] = board_eval(one.boards)
        rows_of_game["move_dir"], rows_of_game["seed"] = one.moves, one.seed
        rows_of_game["max_rank"] = one.boards.max(axis=1)
        tuples = np.arange(len(rows_of_game)) % 4 == 3
        rows_of_game["valuation_type"] = np.where(
            tuples, 1 + np.arange(len(rows_of_game)) % (kinds - 1), 0
        )
        # The logs of tuple rows say 0.0 for moves that the board does not allow.
        rows_of_game["ev_legal"] = np.where(tuples, 15, legal_moves(one.boards))
        legal = (legal_moves(one.boards)[:, None] >> np.arange(4)) & 1
        rows_of_game["branch_evs"] = legal * np.linspace(0.1, 0.9, 4, dtype=np.float32)
        games_rows.append(rows_of_game)
    return joined(games_rows) if games_rows else np.zeros(0, rows.STEP_ROW_DTYPE)


def run_table(games: Sequence[Game]) -> list[Run]:
    return [
        Run(i, one.seed, len(one.boards), one.score, one.highest_tile)
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
    runs: Sequence[Run] | None = None,
) -> Path:
    """Write a pack of these games without a trace; `steps` and `runs` replace its rows and runs."""
    folder.mkdir(parents=True)
    steps = step_rows(games) if steps is None else steps
    with rows.ShardWriter(folder, rows.STEP_FORMATS[layout], shard_rows) as writer:
        writer.write(rows.to_layout(steps, layout))
    table = run_table(games) if runs is None else runs
    write_metadata(folder / "metadata.db", table, session or {})
    write_valuation_types(folder / "valuation_types.json", names, enum_form)
    return folder


def joined(parts: Sequence[rows.Rows]) -> rows.Rows:
    """np.concatenate by bytes, which also copies the padding."""
    return np.concatenate([rows.as_bytes(part) for part in parts]).view(parts[0].dtype)[:, 0]


def all_rows(folder: Path) -> rows.Rows:
    """Every row of a pack, aligned."""
    return joined([rows.to_aligned(rows.open_steps(file)) for file in rows.step_files(folder)])


def cut(one: Game, moves: int) -> Game:
    """The first steps of a game, as a log that was cut; score and tile are those of the game."""
    return Game(one.seed, one.boards[:moves], one.moves[:moves], one.score, one.highest_tile)

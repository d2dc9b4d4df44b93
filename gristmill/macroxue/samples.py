"""Sample drops, and the player of 2048 whose games look like real ones.

It values a move by the tiles that may appear after it and the best reply to each of them
(expectimax over two moves), in units of board_eval. All arithmetic up to the last division is
in integers, so that games are the same on each machine.
Source: docs/formats/macroxue.md#raw-drop.
"""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.macroxue.rules.game import DIRECTIONS, Ranks, board_eval, board_score, move_towards

# This is subtracted from the board_eval of a board without a legal move.
_LOSS = 2_000_000
# A new tile has rank 1 nine times in ten, else rank 2.
_WEIGHTS = {1: 9, 2: 1}
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Step:
    """One move of a game; values: expected board_eval after each move, NaN for an illegal one."""

    board: tuple[int, ...]
    move: int
    values: tuple[float, float, float, float]
    reward: int
    after: tuple[int, ...]


class Dice:
    """The random numbers of SplitMix64: the same for a seed on each machine, with any library."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _WORD

    def below(self, bound: int) -> int:
        """A number of 0..bound-1; for a bound below 2^14 the bias is under 2^-50."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        word = self._state
        word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _WORD
        return (word ^ word >> 31) % bound


def spawn(board: Ranks, dice: Dice) -> None:
    """Put a new tile on an empty cell of a board uint8 [16]: rank 1, or rank 2 once in ten."""
    empty = np.flatnonzero(board == 0)
    cell = empty[dice.below(len(empty))]
    board[cell] = 2 if dice.below(10) == 0 else 1


def _best_reply(boards: Ranks) -> NDArray[np.int64]:
    """The board_eval int64 [N] after the best move on each board; less _LOSS if none is legal."""
    moved = [move_towards(boards, direction) for direction in range(4)]
    changed = np.stack([change for _, _, change in moved])
    scores = np.full(changed.shape, np.iinfo(np.int64).min)
    scores[changed] = board_eval(np.stack([after for after, _, _ in moved])[changed])
    lost = np.flatnonzero(~changed.any(axis=0))
    scores[0, lost] = board_eval(boards[lost]).astype(np.int64) - _LOSS
    best: NDArray[np.int64] = scores.max(axis=0)
    return best


def judge(boards: Ranks) -> tuple[NDArray[np.float64], list[Ranks], list[NDArray[np.int64]]]:
    """Value each move: the expected board_eval after the move, a new tile and the best reply.

    Returns values float64 [N, 4] with NaN for illegal moves; the boards after each move, four
    uint8 [N, 16]; and its points, four int64 [N].
    """
    values = np.full((len(boards), 4), np.nan)
    made = [move_towards(boards, direction) for direction in range(4)]
    afters, rewards = [each[0] for each in made], [each[1] for each in made]
    direction_of, row_of = np.nonzero(np.stack([each[2] for each in made]))
    moved = np.stack(afters)[direction_of, row_of]

    # Each new tile on each empty cell, for all boards and moves together.
    which, cell = np.nonzero(moved == 0)
    total = np.zeros(len(moved), np.int64)
    tiles = np.repeat(moved[which][None], len(_WEIGHTS), axis=0)
    for layer, rank in zip(tiles, _WEIGHTS, strict=True):
        layer[np.arange(len(cell)), cell] = rank
    replies = _best_reply(tiles.reshape(-1, 16)).reshape(len(_WEIGHTS), -1)
    for scores, weight in zip(replies, _WEIGHTS.values(), strict=True):
        np.add.at(total, which, weight * scores)
    chances = sum(_WEIGHTS.values()) * np.bincount(which, minlength=len(moved))
    values[row_of, direction_of] = total / chances
    return values, afters, rewards


def play(starts: Ranks, dice: list[Dice], limits: list[int]) -> Iterator[list[tuple[int, Step]]]:
    """Play several games together, from boards uint8 [G, 16].

    Yields one list for each move: (game, step) of the games that are not over. A game is over
    without a legal move, or after its limit.
    """
    boards = starts.copy()
    going = np.flatnonzero(np.array(limits) > 0)
    moves = 0
    while len(going):
        values, afters, rewards = judge(boards[going])
        able = ~np.isnan(values).all(axis=1)
        steps = []
        for row in np.flatnonzero(able):
            game = int(going[row])
            best = int(np.nanargmax(values[row]))
            up, down, left, right = (float(value) for value in values[row])
            before = tuple(boards[game].tolist())
            boards[game] = afters[best][row]
            spawn(boards[game], dice[game])
            after = tuple(boards[game].tolist())
            reward = int(rewards[best][row])
            steps.append((game, Step(before, best, (up, down, left, right), reward, after)))
        yield steps
        moves += 1
        going = np.array([game for game in going[able] if limits[game] > moves], dtype=np.intp)


_GAMES_A_WORKER = 2
# The order of branch_evs in real logs, and `move_index` of old ones.
_BRANCH_ORDER = (0, 2, 3, 1)
_OLD_INDEX = {"up": 0, "left": 1, "right": 2, "down": 3}
_UNLIMITED = 1 << 62


def write_drop(
    folder: Path,
    seed: int,
    games: int,
    max_moves: int | None,
    depth: int,
    *,
    legacy: bool = False,
    high: bool | None = None,
) -> None:
    """Play games and write their `.meta.json` and `.jsonl.gz` pairs.

    max_moves: each game is cut at a random move in the last two thirds of this number, as real
        games are cut when the time of their worker is over. None: games are played to the end,
        about 2,000 moves.
    depth: a label in names and meta files; the player always looks two moves ahead.
    legacy: also write what older logs have: their further keys, a nested key that readers skip,
        each third meta file gzipped, and search rows without valuation_type in each fifth game.
        Default False.
    high: each fifth game starts on a board with a 65536, as no new game does: the check
        `noteworthy` warns of it. Default as `legacy`.

    The bytes depend only on the arguments, and on zlib for the compression.
    """
    if games < 1 or (max_moves is not None and max_moves < 1):
        raise ValueError("a drop needs at least one game of at least one move")
    played = _play_games(seed, games, max_moves, legacy if high is None else high)
    folder.mkdir(parents=True)
    for game, steps in enumerate(played):
        _write_game(folder, seed, game, steps, depth, legacy)


def _play_games(seed: int, games: int, max_moves: int | None, high: bool) -> list[list[Step]]:
    """The steps of each game."""
    dice = [Dice(seed + game) for game in range(games)]
    starts = np.stack([_start(dice[game], high=high and game % 5 == 3) for game in range(games)])
    limits = [
        _UNLIMITED if max_moves is None else max_moves - own.below(max_moves * 2 // 3 + 1)
        for own in dice
    ]
    played: list[list[Step]] = [[] for _ in range(games)]
    for steps in play(starts, dice, limits):
        for game, step in steps:
            played[game].append(step)
    return played


def _write_game(
    folder: Path, seed: int, game: int, steps: list[Step], depth: int, legacy: bool
) -> None:
    """Write both files of one game."""
    worker, index = divmod(game, _GAMES_A_WORKER)
    first = seed + worker * _GAMES_A_WORKER
    stem = f"depth{depth:02d}_worker{worker:02d}_seed{first:010d}_game{index:06d}"
    head = f'{{"seed":{seed + game},'
    if legacy:
        head += f'"depth":{depth},"game_index":{index},'
    untyped = legacy and game % 5 == 0
    lines = [
        head + _step_json(step, number, _valuation_type(step.board), legacy, untyped)
        for number, step in enumerate(steps)
    ]
    (folder / f"{stem}.jsonl.gz").write_bytes(_gzip("".join(lines)))
    meta = _meta_json(f"{folder.name}/{stem}", seed + game, depth, index, steps)
    if legacy and game % 3 == 2:
        (folder / f"{stem}.meta.json.gz").write_bytes(_gzip(meta))
    else:
        (folder / f"{stem}.meta.json").write_text(meta, encoding="ascii")


def _start(dice: Dice, high: bool) -> Ranks:
    """A board uint8 [16] with two new tiles; high: also with a 65536 and four large tiles."""
    board = np.zeros(16, np.uint8)
    if high:
        board[:5] = (16, 14, 11, 9, 13)
    spawn(board, dice)
    spawn(board, dice)
    return board


def _valuation_type(board: tuple[int, ...]) -> str:
    """The valuation type of a row: as in real logs, tuple types come with large tiles."""
    if max(board) < 8 or board[0] != max(board):
        return "search"
    empty = board.count(0)
    if empty >= 9:
        return "tuple10"
    return "tuple11" if empty == 8 else "search"


def _step_json(step: Step, number: int, kind: str, legacy: bool, untyped: bool) -> str:
    """The text of a step line from step_index on, with 6 decimals and without spaces."""
    numbers = []
    for value in step.values:
        if math.isnan(value):
            # A search logs null for an illegal move, a tuple network logs 0.
            numbers.append("null" if kind == "search" else "0.000000")
            continue
        # A number of 0..1 that grows with the value, the same on each machine: it needs no libm.
        gain = (value - board_score(step.board)) / 4000.0
        chance = 0.5 + 0.5 * gain / (1.0 + abs(gain))
        numbers.append(f"{value / 1000.0 if kind == 'search' else chance:.6f}")
    move = DIRECTIONS[step.move]
    branches = ",".join(f'"{DIRECTIONS[k]}":{numbers[k]}' for k in _BRANCH_ORDER)
    old = f'"move_index":{_OLD_INDEX[move]},' if legacy else ""
    typed = "" if untyped and kind == "search" else f'"valuation_type":"{kind}",'
    skipped = f',"trace":{{"n":{number},"note":"\\"}},{{\\u00e9\\\\","path":[[{number % 4}],[]]}}'
    skipped = skipped if legacy else ""
    cells = ",".join(map(str, step.board))
    return (
        f'"step_index":{number},"max_rank":{max(step.board)},"move":"{move}",{old}{typed}'
        f'"valuation":{numbers[step.move]},"board":[{cells}],'
        f'"branch_evs":{{{branches}}}{skipped}}}\n'
    )


def _meta_json(stem: str, seed: int, depth: int, index: int, steps: list[Step]) -> str:
    """The meta object of one game; `seconds` is computed from the moves, to be reproducible."""
    last = steps[-1].after
    score = sum(step.reward for step in steps)
    tiles = sum(1 << rank for rank in last if rank)
    return (
        f'{{"seed":{seed},"depth":{depth},"game_index":{index},'
        f'"steps_file":"selfplay_logs/{stem}.jsonl.gz","num_moves":{len(steps)},"score":{score},'
        f'"max_tile":{1 << max(last)},"max_rank":{max(last)},"sum_tile":{tiles},'
        f'"seconds":{len(steps) * depth / 4000.0:.6f}}}\n'
    )


def _gzip(text: str) -> bytes:
    """One gzip member without name and time, so that its bytes are reproducible."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=6, mtime=0) as member:
        member.write(text.encode("ascii"))
    return buffer.getvalue()


def write_d6(path: Path) -> None:
    """Write the sample drop of search depth 6, with values."""
    write_drop(path, 272_350_805, games=10, max_moves=800, depth=6)


def write_d7(path: Path) -> None:
    """Write the sample drop of search depth 7, in the form of old logs."""
    write_drop(path, 1_273_930_896, games=10, max_moves=800, depth=7, legacy=True, high=False)


def write_pool(path: Path) -> None:
    """Write the file of a pool of both sample drops."""
    path.write_text('members = ["sample_d6", "sample_d7"]\n')


def write_view(path: Path) -> None:
    """Write the file of a view of that pool, with a fifth of its games for validation."""
    path.write_text('pool = "samples"\n\n[macroxue.training_view]\nvalidation_share = 0.2\n')

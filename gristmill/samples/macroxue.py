"""Sample drops of 2048 games in the raw form that Macroxue's capture script leaves behind.

The games are played here (`player.py`), so nobody's data is copied. The form
is that of docs/formats/macroxue.md#raw-drop; `legacy` adds what older logs hold.
"""

from __future__ import annotations

import gzip
import io
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gristmill.macroxue.rules.board_eval import board_score
from gristmill.macroxue.rules.moves import DIRECTIONS, Ranks
from gristmill.samples.player import Dice, Step, play, spawn

_GAMES_A_WORKER = 2
# The order of branch_evs in real logs, and `move_index` of old ones.
_BRANCH_ORDER = (0, 2, 3, 1)
_OLD_INDEX = {"up": 0, "left": 1, "right": 2, "down": 3}
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class DropCounts:
    """What a drop holds: games, steps, files; steps by valuation type and in games without one."""

    games: int
    steps: int
    files: int
    valuation_types: dict[str, int] = field(default_factory=dict)


def write_drop(
    folder: Path,
    seed: int,
    games: int,
    max_moves: int | None,
    depth: int,
    *,
    legacy: bool = False,
) -> DropCounts:
    """Play `games` and write their `.meta.json` and `.jsonl.gz` pairs into `folder`.

    folder: is made; must not exist. seed: of the first game, the others count
    on from it. max_moves: games are cut short somewhere in the upper two thirds
    of it, as real ones are when their worker's time is up; None plays to the
    end (about 2,000 moves). depth: only a label in names and meta files; the
    player looks two moves ahead.
    legacy: also the keys of older logs and a nested one that readers must skip,
    every third meta gzipped, every fifth game without valuation_type on search
    rows, and every fifth game from a board with a 65536 on it.
    The bytes depend on the arguments alone, and on zlib for the compression.
    """
    if games < 1 or (max_moves is not None and max_moves < 1):
        raise ValueError("a drop needs at least one game of at least one move")
    dice = [Dice(seed + game) for game in range(games)]
    starts = np.stack([_start(dice[game], high=legacy and game % 5 == 3) for game in range(games)])
    limits = [
        _UNLIMITED if max_moves is None else max_moves - own.below(max_moves * 2 // 3 + 1)
        for own in dice
    ]
    played: list[list[Step]] = [[] for _ in range(games)]
    for steps in play(starts, dice, limits):
        for game, step in steps:
            played[game].append(step)

    folder.mkdir(parents=True)
    types: dict[str, int] = {}
    for game, steps_of_game in enumerate(played):
        worker, index = divmod(game, _GAMES_A_WORKER)
        first = seed + worker * _GAMES_A_WORKER
        stem = f"depth{depth:02d}_worker{worker:02d}_seed{first:010d}_game{index:06d}"
        lines = []
        for number, step in enumerate(steps_of_game):
            kind = _valuation_type(step.board)
            types[kind] = types.get(kind, 0) + 1
            head = f'{{"seed":{seed + game},'
            if legacy:
                head += f'"depth":{depth},"game_index":{index},'
            untyped = legacy and game % 5 == 0
            lines.append(head + _step_json(step, number, kind, legacy, untyped))
        (folder / f"{stem}.jsonl.gz").write_bytes(_gzip("".join(lines)))
        meta = _meta_json(f"{folder.name}/{stem}", seed + game, depth, index, steps_of_game)
        if legacy and game % 3 == 2:
            (folder / f"{stem}.meta.json.gz").write_bytes(_gzip(meta))
        else:
            (folder / f"{stem}.meta.json").write_text(meta, encoding="ascii")
    return DropCounts(games, sum(map(len, played)), 2 * games, types)


def _start(dice: Dice, high: bool) -> Ranks:
    """An empty board with two new tiles; `high`: a 65536 and a few large ones before them."""
    board = np.zeros(16, np.uint8)
    if high:
        board[:5] = (16, 14, 11, 9, 13)
    spawn(board, dice)
    spawn(board, dice)
    return board


def _valuation_type(board: tuple[int, ...]) -> str:
    """Which kind of valuation a row claims; as in real logs the tuple kinds come with large tiles.

    Any rule of the board alone will do here: what matters is that all three occur.
    """
    if max(board) < 8 or board[0] != max(board):
        return "search"
    empty = board.count(0)
    if empty >= 9:
        return "tuple10"
    return "tuple11" if empty == 8 else "search"


def _chance(value: float, board: tuple[int, ...]) -> float:
    """A value of 0..1 that rises with `value`, as tuple rows carry; no libm, so exact anywhere."""
    gain = (value - board_score(board)) / 4000.0
    return 0.5 + 0.5 * gain / (1.0 + abs(gain))


def _step_json(step: Step, number: int, kind: str, legacy: bool, untyped: bool) -> str:
    """The row from step_index on: floats with 6 decimals, no spaces, a newline at the end."""
    numbers = []
    for value in step.values:
        if math.isnan(value):
            # Searches know what is illegal; the tuple networks' logs say 0.
            numbers.append("null" if kind == "search" else "0.000000")
        else:
            scaled = value / 1000.0 if kind == "search" else _chance(value, step.board)
            numbers.append(f"{scaled:.6f}")
    move = DIRECTIONS[step.move]
    branches = ",".join(f'"{DIRECTIONS[k]}":{numbers[k]}' for k in _BRANCH_ORDER)
    old = f'"move_index":{_OLD_INDEX[move]},' if legacy else ""
    typed = "" if untyped and kind == "search" else f'"valuation_type":"{kind}",'
    junk = ""
    if legacy:
        junk = f',"trace":{{"n":{number},"note":"\\"}},{{\\u00e9\\\\","path":[[{number % 4}],[]]}}'
    cells = ",".join(map(str, step.board))
    return (
        f'"step_index":{number},"max_rank":{max(step.board)},"move":"{move}",{old}{typed}'
        f'"valuation":{numbers[step.move]},"board":[{cells}],'
        f'"branch_evs":{{{branches}}}{junk}}}\n'
    )


def _meta_json(stem: str, seed: int, depth: int, index: int, steps: list[Step]) -> str:
    """The sidecar of one game; `seconds` is derived from the moves, so that it is reproducible."""
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
    """One gzip member without a name and a time, so that its bytes are reproducible."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=6, mtime=0) as member:
        member.write(text.encode("ascii"))
    return buffer.getvalue()

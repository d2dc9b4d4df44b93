"""Drops of steps as other programs write them, made of games that are played by the rules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.macroxue.format.rows import MOVES, pack_boards
from gristmill.macroxue.raw.step_files import proposal
from tests.macroxue.games import Game

SELF_PLAY = np.dtype([("run_id", "<u8"), ("step_idx", "<u4"), ("exps", "u1", (16,))])
LEGACY = np.dtype([("run_id", "<u4"), ("step_index", "<u4"), ("board", "<u8"), ("move", "<U5")])


def describe(folder: Path) -> Path:
    """Write the steps.toml that is proposed for a folder."""
    (folder / "steps.toml").write_text(proposal(folder))
    return folder


def save(folder: Path, rows: np.ndarray[Any, Any], shards: int = 1) -> Path:
    """Write rows as `steps.npy`, or as shards of six digits, with the proposed steps.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(rows, shards), 1):
        np.save(folder / (f"steps-{number:06d}.npy" if shards > 1 else "steps.npy"), part)
    return describe(folder)


def self_play(games: Sequence[Game], ids: Sequence[int]) -> np.ndarray[Any, Any]:
    """Rows of the engine: all games take turns, step by step."""
    rows = np.concatenate(
        [_rows(SELF_PLAY, game, run) for game, run in zip(games, ids, strict=True)]
    )
    rows["exps"] = np.concatenate([game.boards for game in games])
    return rows[np.argsort(rows["step_idx"], kind="stable")]


def legacy(games: Sequence[Game]) -> np.ndarray[Any, Any]:
    """Rows with a packed board without mask, and moves by name."""
    rows = np.concatenate([_rows(LEGACY, game, run) for run, game in enumerate(games)])
    rows["board"] = pack_boards(np.concatenate([game.boards for game in games]))[0]
    rows["move"] = np.array(MOVES)[np.concatenate([game.moves for game in games])]
    return rows


def _rows(dtype: np.dtype[Any], game: Game, run: int) -> np.ndarray[Any, Any]:
    rows = np.zeros(len(game.boards), dtype)
    rows["run_id"] = run
    rows[dtype.names[1]] = np.arange(len(rows))
    return rows

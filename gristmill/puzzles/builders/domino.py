"""Domino games become a dataset. Source: docs/formats/puzzles.md#domino."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gristmill.contract import BadInput
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset
from gristmill.puzzles.config import DominoConfig
from gristmill.puzzles.domains.domino_rows import ENCODING, KIND, SEQ_LEN
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.format import SET
from gristmill.puzzles.format.dataset import Batch, Sets
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.run.workers import threaded_map

_TASK_BYTES = 16 << 20
_GAMES_AT_ONCE = 1 << 16
_MOST_NAMED: Final = 10


@dataclass(frozen=True)
class DominoSummary(DatasetSummary):
    """What was built."""

    duplicates_removed: int
    leaks_dropped: int


@dataclass(frozen=True)
class _Games:
    """Games of one split. rows: inputs and labels, uint8 [games, 72]; None: to be played again."""

    split: str
    numbers: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]
    rows: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]] | None

    def __getitem__(self, places: slice | npt.NDArray[np.integer]) -> _Games:
        rows = self.rows and (self.rows[0][places], self.rows[1][places])
        return _Games(self.split, self.numbers[places], self.keys[places], rows)

    def __len__(self) -> int:
        return len(self.numbers)


def build_domino(
    out: Path,
    config: DominoConfig | None = None,
    *,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
) -> DominoSummary:
    """Sample Domino games and write them as a dataset.

    out: a folder that does not exist yet.
    config: default `DominoConfig()`.
    parts: keeps finished parts for the build after a kill; default None.
    progress: gets the rows done.

    Raises BadInput where a test game is also a training game and `config.leaks` is `refuse`, or
    where a split would be empty.
    """
    config = config or DominoConfig()
    train, train_forms, train_twice = _distinct("train", config)
    test, test_forms, test_twice = _distinct("test", config)
    drawn = _subsample(train, config)
    is_leak = np.isin(test_forms, train_forms[drawn])
    if config.leaks == "refuse" and is_leak.any():
        raise BadInput(KIND, _refusal(test.numbers[is_leak]))
    plan = Plan(
        kind=KIND,
        encoding=ENCODING,
        config=config,
        tasks=[*_tasks(train[drawn], config.num_aug), *_tasks(test[np.flatnonzero(~is_leak)], 0)],
        make=_Make(config.num_aug, config.augmentation),
        engine=threaded_map,
    )
    summary = build_dataset(plan, out, parts, progress)
    return DominoSummary(
        **vars(summary),
        duplicates_removed=train_twice + test_twice,
        leaks_dropped=int(is_leak.sum()),
    )


def _distinct(split: str, config: DominoConfig) -> tuple[_Games, npt.NDArray[np.uint64], int]:
    """The games of a split without duplicates, their canonical forms, and how many were removed."""
    from gristmill.puzzles.domains.domino_augment import canonical
    from gristmill.puzzles.domains.domino_game import game_keys, games

    count = config.num_games
    keys, forms = np.empty(count, np.uint64), np.empty(count, np.uint64)
    rows = None
    for begin in range(0, count, _GAMES_AT_ONCE):
        here = slice(begin, min(count, begin + _GAMES_AT_ONCE))
        keys[here] = game_keys(config.seed, split, np.arange(here.start, here.stop))
        rows = games(keys[here])
        forms[here] = canonical(rows[0], config.augmentation)
    firsts = np.sort(np.unique(forms, return_index=True)[1])
    kept = rows if count <= _GAMES_AT_ONCE else None
    found = _Games(split, np.arange(count, dtype=np.int32), keys, kept)[firsts]
    return found, forms[firsts], count - len(firsts)


def _subsample(games: _Games, config: DominoConfig) -> npt.NDArray[np.integer]:
    """Places of the games to take, in order."""
    size = config.subsample_size
    if size is None or size >= len(games):
        return np.arange(len(games))
    drawn = [
        source_key(config.seed, f"{KIND}:subsample", f"{games.split}:{number}")
        for number in games.numbers
    ]
    return np.argsort(np.array(drawn, np.uint64), kind="stable")[:size]


def _refusal(numbers: npt.NDArray[np.int32]) -> str:
    named = ", ".join(map(str, numbers[:_MOST_NAMED].tolist()))
    return (
        f"{len(numbers)} games of the test split are also in the training split: {named}"
        f"{', ...' if len(numbers) > _MOST_NAMED else ''}; leaks = drop leaves them out"
    )


def _tasks(games: _Games, num_aug: int) -> list[tuple[str, _Games]]:
    step = max(1, _TASK_BYTES // (2 * SEQ_LEN * (1 + num_aug)))
    return [
        (f"{games.split}-{begin:09d}", games[begin : begin + step])
        for begin in range(0, len(games), step)
    ]


@dataclass(frozen=True)
class _Make:
    num_aug: int
    augmentation: str

    def __call__(self, task: _Games) -> Mapping[Sets, Batch]:
        from gristmill.puzzles.domains.domino_augment import augmented
        from gristmill.puzzles.domains.domino_game import games

        inputs, labels = task.rows or games(task.keys)
        draws = np.zeros(len(task), np.int32)
        groups = np.ones(len(task), np.int32)
        if self.num_aug and task.split == "train":
            inputs, labels, draws, groups = augmented(
                inputs, labels, task.keys, self.num_aug, self.augmentation
            )
        origins = np.empty((len(inputs), 3), np.int32)
        origins[:, 0] = -1
        origins[:, 1] = np.repeat(task.numbers, groups)
        origins[:, 2] = draws
        examples = np.ones(len(inputs), np.int32)
        return {(task.split, SET): Batch(inputs, labels, origins, examples, groups)}

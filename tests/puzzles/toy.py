"""A small kind of puzzle for tests of what all kinds share."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gristmill.puzzles.builders.dataset import Plan
from gristmill.puzzles.format.dataset import Batch, Encoding, Sets, SourceFile

WIDTH = 5


@dataclass(frozen=True)
class ToyConfig:
    """dtype and workers as in the configs of the family; seed is any other field."""

    dtype: str = "int32"
    workers: int = 1
    seed: int = 7


@dataclass(frozen=True)
class ToyTask:
    """Examples of a set: groups of two puzzles, with one and two examples."""

    key: Sets
    first: int
    groups: int
    named: bool = True


def make(task: ToyTask) -> Mapping[Sets, Batch]:
    """The batch of a task; the tokens say which example they belong to."""
    count = 3 * task.groups
    rows = task.first + np.arange(count)[:, None]
    tokens = ((rows * 3 + np.arange(WIDTH)) % 9 + 1).astype(np.uint8)
    origins = np.zeros((count, 3), np.int32)
    origins[:, 1] = rows[:, 0]
    origins[1::3, 2] = 1
    origins[2::3, 2] = 2
    puzzles = [f"p{(task.first + 3 * g) // 3}_{k}" for g in range(task.groups) for k in (0, 1)]
    return {
        task.key: Batch(
            inputs=tokens,
            labels=tokens[:, ::-1].copy(),
            origins=origins,
            examples=np.array([1, 2] * task.groups, np.int32),
            puzzles=np.full(task.groups, 2, np.int32),
            names=tuple(puzzles) if task.named else None,
        )
    }


def plan(
    config: ToyConfig | None = None,
    sets: Mapping[str, tuple[str, ...]] | None = None,
    ignored: int | None = 0,
    *,
    named: bool = True,
) -> Plan[ToyTask]:
    """A plan of two tasks for each set of training, and one for each set of the test split."""
    sets = sets or {"train": ("all",), "test": ("all",)}
    tasks = [
        (f"{split}-{name}-{first}", ToyTask((split, name), first, groups, named))
        for split in ("train", "test")
        for name in sets[split]
        for first, groups in (((0, 4), (12, 2)) if split == "train" else ((0, 1),))
    ]
    return Plan(
        kind="toy",
        encoding=Encoding(WIDTH, 10, ignore_label_id=ignored),
        config=config or ToyConfig(),
        tasks=tasks,
        make=make,
        files=[SourceFile("toy/a.json", "00" * 32, {"hash": "ab"})],
        sets=sets,
    )

"""Lights Out as a dataset: the puzzle that docs/adding-a-puzzle.md adds, step by step.

Run from the checkout: python examples/lights_out.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from gristmill.contract import Violation
from gristmill.puzzles.builders.dataset import DatasetSummary, Plan, build_dataset
from gristmill.puzzles.domains.grid import transform
from gristmill.puzzles.domains.randomness import source_key
from gristmill.puzzles.format.dataset import Batch, Encoding
from gristmill.puzzles.laws.contract import augmentation_law, contract_laws
from gristmill.puzzles.read.rows import Dataset
from gristmill.settings.fields import NO_EFFECT, Checked, Count, Ge, Help, Le

KIND = "lights-out"
SIDES = (2, 3, 6)
PAD, SEPARATOR, OFF, ON, FIRST_SIDE = range(5)
CONTROL, CELLS = (0, 1), 2
ENCODING = Encoding(seq_len=CELLS + max(SIDES) ** 2, vocab_size=FIRST_SIDE + len(SIDES))

Board = npt.NDArray[np.uint8]


def lit(presses: Board) -> Board:
    """The lights after the presses; both hold 0 or 1, and may have boards in front."""
    around = np.pad(presses, [(0, 0)] * (presses.ndim - 2) + [(1, 1)] * 2)
    across = around[..., 1:-1, :-2] ^ around[..., 1:-1, 2:]
    return presses ^ across ^ around[..., :-2, 1:-1] ^ around[..., 2:, 1:-1]


@dataclass(frozen=True)
class LightsOutConfig(Checked):
    """How boards become a dataset."""

    CODE_VERSION: ClassVar = "1"

    boards: Annotated[int, Ge(10), Help("Boards of each split.")] = 1000
    num_aug: Annotated[Count, Le(7), Help("Symmetries.")] = 7
    seed: Annotated[Count, Help("Decides every board.")] = 42
    dtype: Literal["int32", "uint8"] = "int32"
    workers: Annotated[Count, NO_EFFECT] = 1


def presses_of(seed: int, split: str, number: int) -> Board:
    """The solution of a board: it depends on the seed and the name of the board alone."""
    key, side = divmod(source_key(seed, KIND, f"{split}:{number}"), len(SIDES))
    cells = [key >> bit & 1 for bit in range(SIDES[side] ** 2)]
    return np.array(cells, np.uint8).reshape(SIDES[side], -1)


def make(
    config: LightsOutConfig, task: tuple[str, Sequence[int]]
) -> Mapping[tuple[str, str], Batch]:
    """The batch of a task, boards of a split by number: each with its symmetries after it."""
    split, numbers = task
    draws = range(1 + (config.num_aug if split == "train" else 0))
    inputs, labels, origins, puzzles = [], [], [], []
    for number in numbers:
        presses = presses_of(config.seed, split, number)
        turned = {transform(presses, draw).tobytes(): draw for draw in reversed(draws)}
        for draw in sorted(turned.values()):
            after = transform(presses, draw)
            inputs.append(row([FIRST_SIDE + SIDES.index(len(presses)), SEPARATOR], lit(after)))
            labels.append(row([PAD, PAD], after))
            origins.append((-1, number, draw))
        puzzles.append(len(turned))
    ones, sizes = np.ones(len(inputs), np.int32), np.array(puzzles, np.int32)
    tokens = np.stack(inputs), np.stack(labels), np.array(origins, np.int32)
    return {(split, "all"): Batch(*tokens, examples=ones, puzzles=sizes)}


def row(control: list[int], board: Board) -> Board:
    """The tokens of a board behind its control fields, padded."""
    tokens = np.full(ENCODING.seq_len, PAD, np.uint8)
    tokens[:CELLS] = control
    tokens[CELLS : CELLS + board.size] = OFF + board.reshape(-1)
    return tokens


def build_lights_out(out: Path, config: LightsOutConfig) -> DatasetSummary:
    """Write boards with their solutions as a dataset in `out`, a folder that is not there yet."""
    known: set[bytes] = set()
    tasks = []
    for split in ("train", "test"):
        numbers = []
        for number in range(config.boards):
            presses = presses_of(config.seed, split, number)
            form = min(transform(presses, symmetry).tobytes() for symmetry in range(8))
            if form not in known:  # neither twice in a split, nor in both
                known.add(form)
                numbers.append(number)
        for first in range(0, len(numbers), 1000):
            tasks.append((f"{split}-{first}", (split, numbers[first : first + 1000])))
    return build_dataset(Plan(KIND, ENCODING, config, tasks, partial(make, config)), out)


def lights_out_laws(folder: Path) -> Iterator[Violation]:
    """Yields what is wrong in a dataset: every solution must light its board."""
    yield from contract_laws(folder)
    yield from augmentation_law(folder, fixed=CONTROL, separators=[SEPARATOR])
    dataset = Dataset(folder)
    for split, name in dataset.sets():
        for rows in dataset.rows(split, name):
            for number, side in enumerate(SIDES):
                of_side = np.flatnonzero(rows.inputs[:, 0] == FIRST_SIDE + number)
                cells = slice(CELLS, CELLS + side**2)
                lights, presses = (
                    tokens[of_side, cells].astype(np.uint8).reshape(-1, side, side) - OFF
                    for tokens in (rows.inputs, rows.labels)
                )
                wrong = (lit(presses) != lights).any(axis=(1, 2))
                for place in rows.first + of_side[wrong]:
                    yield Violation("solution", f"{split} {name} row {place}", "does not light it")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python lights_out.py FOLDER, which is not there yet")
    print(build_lights_out(Path(sys.argv[1]), LightsOutConfig()).examples)
    print(*lights_out_laws(Path(sys.argv[1])), sep="\n")

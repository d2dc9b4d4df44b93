"""Dataset folders for tests of the reader, written by NumPy alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_set(
    folder: Path,
    name: str,
    *,
    seed: int,
    puzzles: Sequence[int],
    examples: Sequence[int],
    seq_len: int = 6,
    dtype: str = "uint8",
    index_dtype: str = "int32",
    identifiers: int = 5,
) -> None:
    """Write the arrays of a set with random tokens 0 to 7.

    puzzles: of each group. examples: of each puzzle.
    """
    chance = np.random.default_rng(seed)
    count = int(np.sum(examples))
    arrays = {
        "inputs": chance.integers(0, 8, (count, seq_len)).astype(dtype),
        "labels": chance.integers(0, 8, (count, seq_len)).astype(dtype),
        "puzzle_identifiers": chance.integers(0, identifiers, len(examples)).astype(index_dtype),
        "puzzle_indices": np.append(0, np.cumsum(examples)).astype(index_dtype),
        "group_indices": np.append(0, np.cumsum(puzzles)).astype(index_dtype),
    }
    for field, array in arrays.items():
        np.save(folder / f"{name}__{field}.npy", array)


def write_split(
    folder: Path,
    *,
    seed: int = 0,
    sets: Sequence[str] = ("all",),
    groups: int = 20,
    most_puzzles: int = 4,
    most_examples: int = 1,
    ignore_label_id: int | None = 0,
    pad_id: int = 0,
    blank_identifier_id: int = 0,
    seq_len: int = 6,
    dtype: str = "uint8",
    index_dtype: str = "int32",
) -> Path:
    """Write a split of random puzzles into the new folder `folder`; return the folder around it."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    total, puzzle_count, example_count = 0, 0, 0
    for number, name in enumerate(sets):
        puzzles = chance.integers(1, most_puzzles + 1, groups + number)
        examples = chance.integers(1, most_examples + 1, int(puzzles.sum()))
        write_set(
            folder,
            name,
            seed=seed + number,
            puzzles=puzzles.tolist(),
            examples=examples.tolist(),
            seq_len=seq_len,
            dtype=dtype,
            index_dtype=index_dtype,
        )
        total += len(puzzles)
        puzzle_count += len(examples)
        example_count += int(examples.sum())
    metadata = {
        "pad_id": pad_id,
        "ignore_label_id": ignore_label_id,
        "blank_identifier_id": blank_identifier_id,
        "vocab_size": 8,
        "seq_len": seq_len,
        "num_puzzle_identifiers": 5,
        "total_groups": total,
        "mean_puzzle_examples": example_count / puzzle_count,
        "sets": list(sets),
    }
    (folder / "dataset.json").write_text(json.dumps(metadata))
    return folder.parent


def taken(batches: Any) -> list[tuple[Any, ...]]:
    """The items of a reader in a form that compares."""
    return [
        (name, size, *(np.asarray(column).tobytes() for column in batch.values()))
        for name, batch, size in batches
    ]

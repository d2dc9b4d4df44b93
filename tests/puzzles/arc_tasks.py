"""Small ARC tasks and sources for tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Grids = list[list[int]]


def pair(seed: int, colours: int = 5, most: int = 6) -> dict[str, Grids]:
    """A pair of random grids of some sizes; few colours make few different augmentations."""
    draws = np.random.default_rng(seed)
    shapes = draws.integers(1, most + 1, (2, 2))
    first, second = (draws.integers(0, colours, shape).tolist() for shape in shapes)
    return {"input": first, "output": second}


def task(seed: int, train: int = 2, test: int = 1, **options: int) -> dict[str, Any]:
    return {
        "train": [pair(100 * seed + k, **options) for k in range(train)],
        "test": [pair(100 * seed + 50 + k, **options) for k in range(test)],
    }


def write(source: Path, tasks: Mapping[str, Any]) -> Path:
    """Write tasks by their paths without the ending."""
    for name, value in tasks.items():
        path = source / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return source


def source(folder: Path) -> Path:
    """A source of five tasks: several pairs, one colour, the longest sides, `test` first."""
    wide = {"input": [[1] * 30], "output": [[k % 10] for k in range(30)]}
    turned = task(5)
    return write(
        folder,
        {
            "training/aa": task(1, train=3, test=2),
            "training/one": {
                "train": [{"input": [[0, 3], [3, 3]], "output": [[3]]}],
                "test": [{"input": [[3]], "output": [[0]]}],
            },
            "evaluation/bb": task(2, train=2, test=2),
            "evaluation/wide": {"train": [wide, pair(7)], "test": [pair(8)]},
            "evaluation/cc": {"test": turned["test"], "train": turned["train"], "name": "named-cc"},
        },
    )

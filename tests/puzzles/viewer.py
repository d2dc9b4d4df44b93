"""What the viewer of the original, `puzzle_visualizer.html`, reads of a folder, step by step.

It runs in a browser: the files are those that a person picks, and npy headers are parsed by a few
replacements of text. The rules are those of the specification's section 9.
"""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

TYPES = {"<u1": 1, "|u1": 1, "|i1": 1, "<u2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8}
"""Types of integers that the viewer knows, and their bytes."""
COLOURS = 12
"""White, light grey, and a palette of ten."""


@dataclass(frozen=True)
class Pair:
    """One example as it is drawn: squares of tokens."""

    inputs: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]


def read_npy(octets: bytes) -> npt.NDArray[np.int64]:
    """Parse an array as the browser does: one byte says how long the header is."""
    length = octets[8]
    offset = 10 + length
    header = octets[10:offset].decode("ascii")
    text = header.strip().replace("'", '"').replace("False", "false").replace("True", "true")
    described = json.loads(
        text.replace("(", "[").replace(",)", "]").replace(")", "]").replace(", }", "}")
    )
    size = TYPES[described["descr"]]
    assert not described["fortran_order"], "it would be drawn in C order"
    assert offset % size == 0, "a typed array begins at a multiple of its size"
    assert (len(octets) - offset) % size == 0
    kind = np.dtype(described["descr"])
    return np.frombuffer(octets, kind, offset=offset).reshape(described["shape"]).astype(np.int64)


def header_fits(header: bytes) -> bool:
    """Whether one byte says how long a header is."""
    return struct.unpack("<H", header[8:10])[0] == header[8] == len(header) - 10


def shown(root: Path, split: str) -> list[list[tuple[str, list[Pair]]]]:
    """The groups that the viewer lists, each a list of puzzles: their names and their pairs."""
    names = json.loads((root / "identifiers.json").read_text())
    assert isinstance(names, list)
    inputs, labels, identifiers, puzzles, groups = (
        read_npy((root / split / f"all__{field}.npy").read_bytes())
        for field in ("inputs", "labels", "puzzle_identifiers", "puzzle_indices", "group_indices")
    )
    side = math.isqrt(inputs.shape[1])
    assert side * side == inputs.shape[1], "only squares can be drawn"
    assert max(int(inputs.max()), int(labels.max())) < COLOURS
    return [
        [
            (
                names[identifiers[puzzle]],
                [
                    Pair(inputs[row].reshape(side, side), labels[row].reshape(side, side))
                    for row in range(puzzles[puzzle], puzzles[puzzle + 1])
                ],
            )
            for puzzle in range(groups[group], groups[group + 1])
        ]
        for group in range(len(groups) - 1)
    ]

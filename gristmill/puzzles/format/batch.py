"""Examples of a dataset while it is built: tokens, origins, puzzles and groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Batch:
    """Whole groups of examples, in order.

    inputs, labels: uint8 or int32 [examples, seq_len].
    origins: int32 [examples, 3]: number of the source file (-1 for none), row in it, number of
        the draw of its augmentation (0 for the source itself).
    examples: int32 [puzzles], how many examples each puzzle has, at least 1.
    puzzles: int32 [groups], how many puzzles each group has, at least 1.
    names: identifiers of the puzzles; None where none has one.

    Raises ValueError where the shapes do not fit together, and for other types.
    """

    inputs: Integers
    labels: Integers
    origins: npt.NDArray[np.int32]
    examples: npt.NDArray[np.int32]
    puzzles: npt.NDArray[np.int32]
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        count = len(self.inputs)
        if self.inputs.ndim != 2 or self.inputs.shape != self.labels.shape:
            raise ValueError(f"inputs {self.inputs.shape} and labels {self.labels.shape} differ")
        if self.inputs.dtype != self.labels.dtype or self.inputs.dtype not in (np.uint8, np.int32):
            raise ValueError("inputs and labels must both be uint8, or both int32")
        if self.origins.shape != (count, 3) or self.origins.dtype != np.int32:
            found = f"{self.origins.dtype} {self.origins.shape}"
            raise ValueError(f"origins {found}, expected int32 {(count, 3)}")
        if self.examples.min(initial=1) < 1 or self.puzzles.min(initial=1) < 1:
            raise ValueError("every puzzle needs an example, and every group a puzzle")
        if int(self.examples.sum()) != count or int(self.puzzles.sum()) != len(self.examples):
            raise ValueError("examples must add up to the rows, puzzles to their number")
        if self.names is not None and len(self.names) != len(self.examples):
            raise ValueError("names must have one entry for each puzzle")

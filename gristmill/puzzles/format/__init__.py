"""What a puzzle dataset is on disk, the contract of the original `PuzzleDataset`: its names."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final, Literal, get_args

Split = Literal["train", "test"]
SPLITS: Final[tuple[Split, ...]] = get_args(Split)
SET: Final = "all"
"""The name of the one set of a split, where a builder has no reason for more."""

METADATA: Final = "dataset.json"
IDENTIFIERS: Final = "identifiers.json"
SOURCES: Final = "trace/sources.json"
TRM: Final = "trm"
"""The folder of an ARC dataset that TRM scores by."""
TEST_PUZZLES: Final = "test_puzzles.json"
"""The tasks of the test split, in that folder and in the datasets of TRM."""
BLANK: Final = "<blank>"
"""The name of identifier 0."""

TOKENS: Final = ("inputs", "labels")
INDICES: Final = ("puzzle_identifiers", "puzzle_indices", "group_indices")
FIELDS: Final = (*TOKENS, *INDICES)


def metadata(split: str) -> str:
    """The path of a split's `dataset.json` in the dataset."""
    return f"{split}/{METADATA}"


def array(split: str, set_name: str, field: str) -> str:
    """The path of an array in the dataset; field: one of `FIELDS`."""
    return f"{split}/{set_name}__{field}.npy"


def origins(split: str, set_name: str) -> str:
    """The path of the origins of a set's examples in the dataset."""
    return f"trace/{split}/{set_name}.npy"


def is_set_name(name: object) -> bool:
    """Whether a set may have this name: it is a part of file names."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= 100
        and PurePosixPath(name).name == name
        and not name.startswith(".")
        and name.isprintable()
        and "\\" not in name
    )


AMBIGUOUS: Final = "has more than one solution"
"""What errors say of a puzzle that can be left out by the setting `unique`."""

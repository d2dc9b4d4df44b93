"""Which files of a source are tables: `train.csv` and `test.csv`, in capitals or not.

See also `rated_csv.py`: their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.puzzles.format.names import SPLITS, Split
from gristmill.puzzles.raw.near_names import check_names

_TABLES: Final[Mapping[str, Split]] = {f"{split}.csv": split for split in SPLITS}


def is_table(name: str) -> bool:
    """Whether a file is a CSV file by its name, in capitals or not."""
    return name.lower().endswith(".csv") and not name.startswith(".")


def split_tables(folder: Path, names: Iterable[str]) -> dict[Split, str]:
    """The CSV files of a folder by their splits: `train.csv` and `test.csv`, in capitals or not.

    Raises BadInput for two files of one split, and for a packed one.
    """
    listed = list(names)
    found: dict[Split, str] = {}
    check_names(folder, listed, lambda name: name.lower() in _TABLES)
    for name in sorted(listed):
        if (split := _TABLES.get(name.lower())) is None:
            continue
        if split in found:
            rule = f"is there beside {found[split]}: keep one of them"
            raise BadInput(folder / name, rule)
        found[split] = name
    return found


def both_tables(folder: Path, names: Iterable[str]) -> dict[Split, Path]:
    """The paths of `train.csv` and `test.csv`, in capitals or not.

    folder, names: as for `split_tables`.

    Raises BadInput where one is missing, and as `split_tables`.
    """
    found = split_tables(folder, names)
    for split in SPLITS:
        if split not in found:
            raise BadInput(folder / f"{split}.csv", "is missing: a maze source needs it")
    return {split: folder / name for split, name in found.items()}

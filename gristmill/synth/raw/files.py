"""Raw SYNTH files: their columns, whether a drop is whole, and which shard takes which file.

Source: `docs/formats/synth.md#raw-files`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, GristmillError

DATASET: Final = "PleIAs/SYNTH"
REVISION: Final = "6ebe6a97043747aa5f2232ea1182841c4a6afcb0"
FILES: Final = 500
SHARDS: Final = 4
DONE: Final = ".done"

TEXTS: Final = ("query", "synthetic_reasoning", "synthetic_answer")
"""The columns that become messages; a row without one of them is skipped."""

COLUMNS: Final = (
    "synth_id",
    "language",
    "exercise",
    "model",
    "query",
    "query_seed_url",
    "query_seed_text",
    "additional_seed_url",
    "seed_license",
    "constraints",
    "script",
    "synthetic_reasoning",
    "synthetic_answer",
    "words",
)
"""All columns of a raw file: nullable strings, but for `words`, int64."""


def files(folder: Path) -> list[Path]:
    """The raw Parquet files of a drop in the order that counts: by name."""
    return sorted(path for path in folder.glob("*.parquet") if path.is_file())


def is_complete(folder: Path, expected: int = FILES) -> bool:
    """Whether the drop has all its files or a `.done` file beside them.

    The shards' runs depend on the whole list, so nothing is built before.
    """
    return len(files(folder)) == expected or ((folder / DONE).exists() and bool(files(folder)))


def complete_files(folder: Path, expected: int = FILES) -> list[Path]:
    """The files of a complete drop. GristmillError says what is missing."""
    found = files(folder)
    if not is_complete(folder, expected):
        raise GristmillError(
            f"{folder}: {len(found)} Parquet files of {expected}: add the others, or a file "
            f"{DONE} if these are all"
        )
    return found


def contiguous_run(paths: Sequence[Path], shard_index: int, shards: int = SHARDS) -> list[Path]:
    """The files of one shard: consecutive, the first shards one longer if they do not divide.

    With 500 files and 4 shards: 001-125, 126-250, 251-375, 376-500.
    """
    if not 0 <= shard_index < shards:
        raise ValueError(f"shard_index {shard_index}: must be from 0 to {shards - 1}")
    length, longer = divmod(len(paths), shards)
    begin = length * shard_index + min(shard_index, longer)
    return list(paths[begin : begin + length + (shard_index < longer)])


def check_columns(path: Path, names: Sequence[str], needed: Sequence[str]) -> None:
    """BadInput names the columns that a raw file lacks."""
    if missing := [name for name in needed if name not in names]:
        raise BadInput(path, f"has no column {', '.join(missing)}: is it a raw SYNTH file?")

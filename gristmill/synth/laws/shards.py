"""The shards of a folder: their numbers and their records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.provenance import Record

SPLITS: Final = ("train", "valid")
"""The splits of a Megatron dataset."""


def shard_numbers(root: Path) -> list[str]:
    """Return the numbers ("00") of the shards of a Megatron dataset, sorted.

    root: the dataset. A shard counts if an index file or a trace of it is there.
    """
    numbers = {
        path.name.split("_")[1] for split in SPLITS for path in (root / split).glob("shard_*.idx")
    }
    numbers |= {path.stem.removeprefix("trace_") for path in root.glob("trace/trace_*.parquet")}
    return sorted(numbers)


def shard_records(root: Path, skip: str | None = None) -> list[Record]:
    """Return the provenance records of the shards of a folder, sorted by partition."""
    folder = root / provenance.SHARED_RECORDS
    paths = sorted(path for path in folder.glob("*.json") if path.stem != skip)
    return [provenance.read_record(path) for path in paths]

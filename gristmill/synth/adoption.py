"""Ready Harmony folders: whether one can be taken as it is, and taking it.

A folder is adopted with its own `manifest.json` and `metadata.json`, byte for
byte, since the seed asks for the manifest's hash; what the manifest says of
sizes and rows need not be true of the folder. Source: seed 001, "Inputs".
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import FileNote, GristmillError, Summary, Violation
from gristmill.parts import sha256_file
from gristmill.synth.columns import RowsDigest
from gristmill.synth.grinding import REQUIRED, open_shard
from gristmill.synth.harmony import HarmonySummary, shard_name

MANIFEST: Final = "manifest.json"
METADATA: Final = "metadata.json"
SCHEMA_VERSION: Final = "synth_harmony_v1"


@dataclass(frozen=True)
class AdoptedManifest(Summary):
    """bytes and hash of the manifest that was taken over, and the rows that it claims."""

    manifest_bytes: int
    claimed_rows: int
    manifest_sha256: str


@dataclass(frozen=True)
class AdoptConfig:
    """What a shard is adopted from: the drop, as `sources.Source.name`."""

    adopted_from: str


def shards(folder: Path) -> dict[str, Path]:
    """Harmony shards of a folder by number ("00"), sorted."""
    found = sorted(folder.glob("synth_harmony_shard_*.parquet"))
    return {path.stem.removeprefix("synth_harmony_shard_"): path for path in found}


def folder_violations(folder: Path) -> Iterator[Violation]:
    """Yield why a folder cannot be adopted; nothing if it can."""
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        yield Violation("manifest", MANIFEST, f"cannot be read: {error}")
    else:
        version = manifest.get("schema_version") if isinstance(manifest, dict) else None
        if version != SCHEMA_VERSION:
            yield Violation("manifest", MANIFEST, f"schema_version {version!r}")
    if not (folder / METADATA).is_file():
        yield Violation("metadata", METADATA, "is not there")
    if not (found := shards(folder)):
        yield Violation("shards", ".", "no synth_harmony_shard_XX.parquet")
    for path in found.values():
        yield from shard_violations(path)


def shard_violations(path: Path) -> Iterator[Violation]:
    """Yield what is wrong with one Harmony shard: columns and their types, null ids."""
    import pyarrow as pa

    try:
        parquet = open_shard(path)
    except GristmillError as error:
        yield Violation("readable", path.name, str(error))
        return
    with parquet:
        for column in parquet.schema_arrow:
            kind = column.type
            if column.name in REQUIRED and not (
                pa.types.is_string(kind) or pa.types.is_large_string(kind)
            ):
                yield Violation("columns", path.name, f"{column.name} is {kind}, not a string")
        for name in REQUIRED:
            column_index = parquet.schema_arrow.names.index(name)
            for group in range(parquet.num_row_groups):
                statistics = parquet.metadata.row_group(group).column(column_index).statistics
                if statistics is not None and statistics.null_count:
                    yield Violation("no nulls", path.name, f"{name} in row group {group}")
                    break


def adopt_shard(source: Path, out: Path, number: str) -> HarmonySummary:
    """Builder: take the ready shard `number` of the folder `source` into `out` as it is.

    Raises GristmillError with all that is wrong with it.
    """
    path = source / shard_name(number)
    if broken := list(shard_violations(path)):
        raise GristmillError("\n".join(f"{source}: {violation}" for violation in broken))
    out.mkdir(parents=True)
    shutil.copyfile(path, out / path.name)
    digest = RowsDigest()
    rows = 0
    with open_shard(path) as parquet:
        groups = parquet.num_row_groups
        for batch in parquet.iter_batches(1000, use_threads=False):
            digest.update(batch)
            rows += len(batch)
    note = FileNote(rows=rows, content_sha256=digest.hexdigest())
    return HarmonySummary({path.name: note}, rows, 0, groups, 1)


def adopt_manifest(source: Path, out: Path) -> AdoptedManifest:
    """Builder: take `manifest.json` and `metadata.json` of a ready folder as they are.

    Raises GristmillError with all that is wrong with the folder.
    """
    if broken := list(folder_violations(source)):
        raise GristmillError("\n".join(f"{source}: {violation}" for violation in broken))
    out.mkdir(parents=True)
    for name in (MANIFEST, METADATA):
        shutil.copyfile(source / name, out / name)
    manifest = json.loads((out / MANIFEST).read_bytes())
    return AdoptedManifest(
        files={MANIFEST: FileNote(), METADATA: FileNote()},
        manifest_bytes=(out / MANIFEST).stat().st_size,
        claimed_rows=int(manifest.get("storage", {}).get("total_rows", 0)),
        manifest_sha256=sha256_file(out / MANIFEST),
    )

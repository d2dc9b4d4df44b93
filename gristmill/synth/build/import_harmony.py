"""Ready Harmony folders: whether one can be taken as it is, and taking it.

A folder is adopted with its own `manifest.json` and `metadata.json`, byte for
byte, since the KD manifest records the manifest's hash; what the manifest says of
sizes and rows need not be true of the folder. Source: `docs/formats/synth.md#import`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import FileNote, GristmillError, Summary, Violation
from gristmill.hashing import sha256_file
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.build.harmony import HarmonySummary, shard_name
from gristmill.synth.build.kd_part import REQUIRED, open_shard, wrong_types
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest

if TYPE_CHECKING:
    import pyarrow.parquet as pq

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
    broken = list(unreadable(folder / MANIFEST))
    yield from (Violation("manifest", MANIFEST, violation.found) for violation in broken)
    if not broken:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if (version := manifest.get("schema_version")) != SCHEMA_VERSION:
            yield Violation("manifest", MANIFEST, f"schema_version {version!r}")
        elif _claimed_rows(manifest) is None:
            yield Violation("manifest", MANIFEST, "storage.total_rows is no number of rows")
    for violation in unreadable(folder / METADATA):
        yield Violation("metadata", METADATA, violation.found)
    if not (found := shards(folder)):
        yield Violation("shards", ".", "no synth_harmony_shard_XX.parquet")
    for path in found.values():
        yield from shard_violations(path)


def unreadable(path: Path) -> Iterator[Violation]:
    """Yield why a file is no JSON object; nothing if it is one."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        yield Violation("readable", path.name, f"cannot be read: {error}")
        return
    if not isinstance(found, dict):
        yield Violation("readable", path.name, "is no JSON object")


def _claimed_rows(manifest: dict[str, Any]) -> int | None:
    """The rows that a manifest claims, 0 where it is silent; None for what is no number."""
    storage = manifest.get("storage", {})
    rows = storage.get("total_rows", 0) if isinstance(storage, dict) else None
    return rows if type(rows) is int and rows >= 0 else None


def shard_violations(path: Path) -> Iterator[Violation]:
    """Yield what is wrong with one Harmony shard: columns and their types, null ids."""
    try:
        shard = open_shard(path)
    except GristmillError as error:
        yield Violation("readable", path.name, str(error))
        return
    with shard:
        for wrong in wrong_types(shard.schema_arrow):
            yield Violation("columns", path.name, wrong)
        # Of the leaves: a struct before them moves the columns.
        leaves = {shard.schema.column(leaf).path: leaf for leaf in range(len(shard.schema.names))}
        for name in REQUIRED:
            for group in range(shard.num_row_groups if name in leaves else 0):
                statistics = shard.metadata.row_group(group).column(leaves[name]).statistics
                if statistics is not None and statistics.null_count:
                    yield Violation("no nulls", path.name, _null(path, shard, name, group))
                    break


def _null(path: Path, shard: pq.ParquetFile, name: str, group: int) -> str:
    """Where the first null of a row group stands."""
    row = sum(shard.metadata.row_group(earlier).num_rows for earlier in range(group))
    try:
        for batch in parquet.batches(path, shard, 1000, [name], [group], row):
            if batch.column(name).null_count:
                return f"{name} of row {row + batch.column(name).is_null().index(True).as_py() + 1}"
            row += len(batch)
    except GristmillError as error:
        return str(error)
    return f"{name} in row group {group}, as its statistics say"


def adopt_shard(
    source: Path, out: Path, number: str, *, progress: Progress = SILENT
) -> HarmonySummary:
    """Builder: take the ready shard `number` of the folder `source` into `out` as it is.

    progress: gets the stage "digest", in rows.

    Raises GristmillError with all that is wrong with it.
    """
    path = source / shard_name(number)
    if broken := list(shard_violations(path)):
        raise GristmillError("\n".join(f"{source}: {violation}" for violation in broken))
    out.mkdir(parents=True)
    shutil.copyfile(path, out / path.name)
    digest = RowsDigest()
    rows = 0
    with (
        open_shard(path) as shard,
        progress.stage("digest", unit="rows", total=shard.metadata.num_rows) as stage,
    ):
        groups = shard.num_row_groups
        for batch in parquet.batches(path, shard, 1000):
            digest.update(batch)
            rows += len(batch)
            stage.advance(len(batch))
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
        claimed_rows=_claimed_rows(manifest) or 0,
        manifest_sha256=sha256_file(out / MANIFEST),
    )

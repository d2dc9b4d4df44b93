"""Import of a finished conversion: is a Harmony folder usable, and the copy of its files.

`manifest.json` and `metadata.json` are copied byte for byte, because the KD
manifest records the sha256 of `manifest.json`.
Source: `docs/formats/synth.md#import`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import FileNote, GristmillError, Summary, Violation
from gristmill.hashing import sha256_file
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.build.harmony import HarmonySummary
from gristmill.synth.build.harmony_shard import open_shard, shard_name, shard_violations, shards
from gristmill.synth.build.manifest_files import (
    HARMONY_SCHEMA,
    MANIFEST,
    METADATA,
    json_violations,
)
from gristmill.synth.format import parquet
from gristmill.synth.format.row_digest import RowsDigest

_BATCH_ROWS: Final = 1000


@dataclass(frozen=True)
class ImportedManifest(Summary):
    """Counts of an imported manifest.

    manifest_bytes: size of `manifest.json`.
    claimed_rows: its `storage.total_rows`, 0 if it has none.
    manifest_sha256: of `manifest.json`.
    """

    manifest_bytes: int
    claimed_rows: int
    manifest_sha256: str


@dataclass(frozen=True)
class ImportConfig:
    """The config of an imported shard.

    adopted_from: the drop, as `source.Source.name`.
    """

    adopted_from: str


def folder_violations(folder: Path) -> Iterator[Violation]:
    """Yield why a folder cannot be imported; nothing if it can.

    folder: with the shards and both JSON files.

    Source: `docs/formats/synth.md#import`.
    """
    broken = list(json_violations(folder / MANIFEST))
    yield from (Violation("manifest", MANIFEST, violation.found) for violation in broken)
    if not broken:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if (version := manifest.get("schema_version")) != HARMONY_SCHEMA:
            yield Violation("manifest", MANIFEST, f"schema_version {version!r}")
        elif _claimed_rows(manifest) is None:
            yield Violation("manifest", MANIFEST, "storage.total_rows is not a number of rows")
    for violation in json_violations(folder / METADATA):
        yield Violation("metadata", METADATA, violation.found)
    if not (paths := shards(folder)):
        yield Violation("shards", ".", f"there is no {shard_name('XX')}")
    for path in paths.values():
        yield from shard_violations(path)


def _claimed_rows(manifest: dict[str, Any]) -> int | None:
    """Return the rows that a manifest names, 0 if it names none, None for an invalid value."""
    storage = manifest.get("storage", {})
    rows = storage.get("total_rows", 0) if isinstance(storage, dict) else None
    return rows if type(rows) is int and rows >= 0 else None


def import_shard(
    source: Path, out: Path, number: str, *, progress: Progress = SILENT
) -> HarmonySummary:
    """Copy one Harmony shard of a finished conversion.

    source: the drop.
    out: folder to write, which must not exist.
    number: of the shard ("00").
    progress: gets the stage "digest", in rows.

    Raises GristmillError with all violations of the shard.
    Source: `docs/formats/synth.md#import`.
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
        for batch in parquet.batches(path, shard, _BATCH_ROWS):
            digest.update(batch)
            rows += len(batch)
            stage.advance(len(batch))
    note = FileNote(rows=rows, content_sha256=digest.hexdigest())
    return HarmonySummary({path.name: note}, rows, 0, groups, 1)


def import_manifest(source: Path, out: Path, progress: Progress = SILENT) -> ImportedManifest:
    """Copy `manifest.json` and `metadata.json` of a finished conversion.

    source: the drop.
    out: folder to write, which must not exist.
    progress: gets the stage "copy", in files.

    Raises GristmillError with all violations of the folder.
    Source: `docs/formats/synth.md#import`.
    """
    if broken := list(folder_violations(source)):
        raise GristmillError("\n".join(f"{source}: {violation}" for violation in broken))
    out.mkdir(parents=True)
    with progress.stage("copy", "files", 2) as stage:
        for name in (MANIFEST, METADATA):
            shutil.copyfile(source / name, out / name)
            stage.advance(1)
    manifest = json.loads((out / MANIFEST).read_bytes())
    return ImportedManifest(
        files={MANIFEST: FileNote(), METADATA: FileNote()},
        manifest_bytes=(out / MANIFEST).stat().st_size,
        claimed_rows=_claimed_rows(manifest) or 0,
        manifest_sha256=sha256_file(out / MANIFEST),
    )

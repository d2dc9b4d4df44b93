"""Import of a finished conversion: is a Harmony folder usable, and the copy of its files.

The manifest is copied byte for byte, since a Megatron dataset's manifest has its sha256.
Source: `docs/formats/synth.md#import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary, Violation
from gristmill.hashing import sha256_file
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders.harmony import HarmonySummary
from gristmill.synth.builders.harmony_shard import (
    no_text_form,
    open_shard,
    shard_name,
    shard_violations,
    shards,
)
from gristmill.synth.builders.manifests import (
    HARMONY_SCHEMA,
    MANIFEST,
    METADATA,
    json_violations,
    read_json,
)
from gristmill.synth.format.trace import RowsDigest
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 1000
_MOST_ROWS: Final = 1 << 53
_SHOWN: Final = 300


@dataclass(frozen=True)
class ImportedManifest(Summary):
    """Counts of an imported manifest."""

    manifest_bytes: int
    claimed_rows: int
    manifest_sha256: str


@dataclass(frozen=True)
class ImportConfig:
    """The config of an imported shard."""

    adopted_from: str


def folder_violations(folder: Path, links: LinkRule = REFUSE_LINKS) -> Iterator[Violation]:
    """Yield why a folder cannot be imported; nothing if it can."""
    try:
        _, manifest = read_json(folder / MANIFEST, links)
    except BadInput as error:
        yield Violation("manifest", MANIFEST, error.rule)
    else:
        if (version := manifest.get("schema_version")) != HARMONY_SCHEMA:
            yield Violation("manifest", MANIFEST, f"schema_version {version!r}"[:_SHOWN])
        elif _claimed_rows(manifest) is None:
            yield Violation("manifest", MANIFEST, "storage.total_rows is not a number of rows")
    for violation in json_violations(folder / METADATA, links):
        yield Violation("metadata", METADATA, violation.found)
    if not (paths := shards(folder)):
        yield Violation("shards", ".", f"there is no {shard_name('XX')}")
    for path in paths.values():
        yield from _violations(path, links)


def _violations(path: Path, links: LinkRule) -> Iterator[Violation]:
    """The violations of a shard; one without rows is none that training could use."""
    broken = list(shard_violations(path, links))
    yield from broken
    if not broken:
        with open_shard(path, links) as shard:
            if not shard.rows:
                found = "has no rows, and a dataset needs all shards: give it a row"
                yield Violation("rows", path.name, found)


def _claimed_rows(manifest: dict[str, Any]) -> int | None:
    """Return the rows that a manifest names, 0 if it names none, None for an invalid value."""
    storage = manifest.get("storage", {})
    rows = storage.get("total_rows", 0) if isinstance(storage, dict) else None
    return rows if type(rows) is int and 0 <= rows < _MOST_ROWS else None


def import_shard(
    source: Path,
    out: Path,
    number: str,
    *,
    progress: Progress = SILENT,
    links: LinkRule = REFUSE_LINKS,
) -> HarmonySummary:
    """Copy one shard of a finished conversion. Raises BadInput, or GristmillError by its laws."""
    path = source / shard_name(number)
    if broken := list(_violations(path, links)):
        raise GristmillError("\n".join(f"{source}: {violation}" for violation in broken))
    digest = RowsDigest()
    rows = 0
    with (
        open_shard(path, links) as shard,
        progress.stage("digest", unit="rows", total=shard.rows) as stage,
    ):
        out.mkdir(parents=True)
        shard.copy(out / path.name)
        groups = len(shard.groups)
        for batch in shard.batches(_BATCH_ROWS):
            _add(digest, batch, path, rows)
            rows += len(batch)
            stage.advance(len(batch))
    note = FileNote(rows=rows, content_sha256=digest.hexdigest())
    return HarmonySummary({path.name: note}, rows, 0, groups, 1)


def _add(digest: RowsDigest, batch: pa.RecordBatch, path: Path, before: int) -> None:
    """Add rows to the digest; `before` rows are before them."""
    import pyarrow as pa

    try:
        digest.update(batch)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise no_text_form(path, error, before) from error


def import_manifest(
    source: Path, out: Path, progress: Progress = SILENT, *, links: LinkRule = REFUSE_LINKS
) -> ImportedManifest:
    """Copy the manifest of a finished conversion. Raises GristmillError with its violations."""
    if broken := list(folder_violations(source, links)):
        raise GristmillError("\n".join(f"{source}: {violation}" for violation in broken))
    contents = {name: read_json(source / name, links) for name in (MANIFEST, METADATA)}
    out.mkdir(parents=True)
    with progress.stage("copy", "files", 2) as stage:
        for name, (octets, _) in contents.items():
            (out / name).write_bytes(octets)
            stage.advance(1)
    _, manifest = contents[MANIFEST]
    return ImportedManifest(
        files={MANIFEST: FileNote(), METADATA: FileNote()},
        manifest_bytes=(out / MANIFEST).stat().st_size,
        claimed_rows=_claimed_rows(manifest) or 0,
        manifest_sha256=sha256_file(out / MANIFEST),
    )

"""The manifests of datasets, from the records of their shards; and finished conversions, copied.

The manifest of a conversion is copied byte for byte, since a Megatron dataset's has its sha256.
Source: `docs/formats/synth.md#kd-manifest`, `docs/formats/synth.md#import`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary, Violation
from gristmill.hashing import sha256_file
from gristmill.provenance import config_fields
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.fields import ADDED_LATER, NO_EFFECT, fields_with, rules_of
from gristmill.synth.builders.harmony import (
    HarmonySummary,
    developer_message,
    kept_runs,
    system_message,
)
from gristmill.synth.builders.harmony_shard import (
    no_text_form,
    open_shard,
    shard_name,
    shard_violations,
    shards,
)
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.format import harmony_tokens, megatron
from gristmill.synth.format.parquet import UntrustedParquet
from gristmill.synth.format.trace import RowsDigest
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, opened
from gristmill.untrusted.json_text import check_nesting
from gristmill.untrusted.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST: Final = "manifest.json"
METADATA: Final = "metadata.json"
GLOB: Final = "synth_harmony_shard_*.parquet"
_NO_CONTENT: Final = frozenset(
    {"created_unix_s", "git_sha", "dataset_dir", "manifest_path", "manifest_sha256", "model_path"}
)
HARMONY_SCHEMA: Final = "synth_harmony_v1"
"""`schema_version` of a Harmony manifest."""
LIMITS: Final = Limits(bytes=16 << 20, depth=64, digits=100)
"""Limits of both JSON files: `docs/formats/synth.md#import`."""


def write_json(path: Path, value: object) -> None:
    """Write JSON with indent 2, in ASCII, with keys in the given order and a final newline."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="ascii")


def content_note(value: object, roots: Sequence[str]) -> FileNote:
    """Return the note of a manifest, whose version counts no time, commit, place or manifest.

    roots: folders as the manifest names them; only what follows them counts.
    """
    text = json.dumps(_content(value, roots), sort_keys=True, separators=(",", ":"))
    return FileNote(content_sha256=hashlib.sha256(text.encode()).hexdigest())


def _content(value: object, roots: Sequence[str]) -> object:
    if isinstance(value, dict):
        return {key: _content(item, roots) for key, item in value.items() if key not in _NO_CONTENT}
    if isinstance(value, list):
        return [_content(item, roots) for item in value]
    if isinstance(value, str):
        return next((value[len(root) :] for root in roots if value.startswith(f"{root}/")), value)
    return value


def read_json(path: Path, links: LinkRule | None = None) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a file and their JSON object. Raises BadInput for none, or a limit."""
    try:
        with opened(path, links) as file:
            octets = file.read(LIMITS.bytes + 1)
        if len(octets) > LIMITS.bytes:
            raise BadInput(path, f"cannot be read: has more than {LIMITS.bytes:,} bytes")
        check_nesting(octets, path, LIMITS)
        value = json.loads(octets)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(path, f"cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(path, "is not a JSON object")
    return octets, value


def json_violations(path: Path, links: LinkRule | None = None) -> Iterator[Violation]:
    """Yield a violation if `read_json` refuses a file. The arguments are the same."""
    try:
        read_json(path, links)
    except BadInput as error:
        yield Violation("readable", path.name, error.rule)


def check_equal_configs(records: Sequence[Mapping[str, Any]], config: type[Any]) -> dict[str, Any]:
    """Return the config and code version of all records. Raises GristmillError if they differ."""
    if not records:
        raise GristmillError("no shard has a record yet: materialize the shards first")
    ignored = fields_with(config, NO_EFFECT)
    added = {name: rules_of(config)[name].default for name in fields_with(config, ADDED_LATER)}
    first, *others = [
        {key: value for key, value in (added | record["config"]).items() if key not in ignored}
        | {"code_version": record.get("code_version")}
        for record in records
    ]
    for record, other in zip(records[1:], others, strict=True):
        keys = sorted(first.keys() | other.keys())
        if different := [key for key in keys if first.get(key) != other.get(key)]:
            values = ", ".join(f"{k} {first.get(k)!r} and {other.get(k)!r}" for k in different)
            raise GristmillError(
                f"shards {records[0].get('partition')} and {record.get('partition')} were built "
                f"from unequal configs: {values}: build all of them with one config"
            )
    return first


@dataclass(frozen=True)
class HarmonyManifestSummary(Summary):
    """Sums over all shards."""

    shards: int
    rows: int
    bytes: int
    skipped: int


def write_harmony_manifest(
    records: Sequence[Mapping[str, Any]],
    out: Path,
    config: HarmonyConfig,
    *,
    dataset_dir: str,
    created_unix_s: int,
    git_sha: str | None,
    progress: Progress = SILENT,
) -> HarmonyManifestSummary:
    """Write both files from the provenance records of the shards, in any order, to a new folder.

    A record is a mapping with `config`, `code_version`, `outputs` (path, bytes, rows, sha256) and
    `counts` (rows, row_groups, skipped), as `provenance.Record.model_dump` returns it. Raises
    GristmillError if there are no records, or if their configs differ from each other or from
    `config`.
    """
    shared = check_equal_configs(records, HarmonyConfig)
    own = config_fields(config)
    if different := [key for key in own if key in shared and shared[key] != own[key]]:
        raise GristmillError(
            f"the shards were built with another {', '.join(different)}: build them again"
        )
    out.mkdir(parents=True)
    metadata = _metadata(config)
    shards = _shards(records, dataset_dir)
    skipped = sum(int(record["counts"]["skipped"]) for record in records)
    manifest = {
        "schema_version": HARMONY_SCHEMA,
        "created_unix_s": created_unix_s,
        "git_sha": git_sha,
        "dataset_dir": dataset_dir,
        "conversion": {
            key: value for key, value in metadata.items() if key not in ("shard_index", "max_rows")
        },
        "storage": _storage(shards, config)
        | {"skipped_rows": skipped, "max_rows": config.max_rows},
    }
    with progress.stage("write", "files", 2) as stage:
        for name, content in ((METADATA, metadata), (MANIFEST, manifest)):
            write_json(out / name, content)
            stage.advance(1)
    return HarmonyManifestSummary(
        files={
            METADATA: content_note(metadata, [dataset_dir]),
            MANIFEST: content_note(manifest, [dataset_dir]),
        },
        shards=len(shards),
        rows=sum(shard["rows"] for shard in shards),
        bytes=sum(shard["bytes"] for shard in shards),
        skipped=skipped,
    )


def _metadata(config: HarmonyConfig) -> dict[str, Any]:
    return {
        "dataset": config.dataset,
        "split": "train",
        "streaming": False,
        "num_shards": config.num_shards,
        # One file for all shards: the original has the index of its last writer.
        "shard_index": None,
        "max_rows": config.max_rows,
        "metadata_fields": list(config.metadata_fields),
        "system_message": system_message(config),
        "developer_message": developer_message(config),
    }


def _shards(records: Sequence[Mapping[str, Any]], dataset_dir: str) -> list[dict[str, Any]]:
    """Return the shards as the manifest lists them, sorted by path."""
    shards = [
        {
            "path": f"{dataset_dir}/{output['path']}",
            "bytes": int(output["bytes"]),
            "rows": int(output["rows"]),
            "row_groups": record["counts"]["row_groups"],
            "sha256": output["sha256"],
        }
        for record in records
        for output in record["outputs"]
    ]
    return sorted(shards, key=lambda shard: str(shard["path"]))


def _storage(shards: Sequence[Mapping[str, Any]], config: HarmonyConfig) -> dict[str, Any]:
    columns = ("messages_json", "metadata_json", *config.metadata_fields)
    return {
        "format": "parquet",
        "glob": GLOB,
        "schema_arrow": "\n".join(f"{name}: string" for name in columns),
        "total_rows": sum(shard["rows"] for shard in shards),
        "total_bytes": sum(shard["bytes"] for shard in shards),
        "shards": shards,
    }


SCHEMA_VERSION: Final = "synth_kd_v1"
_KINDS: Final = ("bin", "idx")
_SPLITS: Final = ("train", "valid")


@dataclass(frozen=True)
class KDManifestSummary(Summary):
    """Sums over all shards."""

    shards: int
    train_rows: int
    train_tokens: int
    valid_rows: int
    valid_tokens: int
    bad_rows: int
    control_texts: int


def contract_config(valid_fraction: float) -> dict[str, Any]:
    """Return the `config` object of the manifest."""
    return {
        "valid_fraction": valid_fraction,
        "hash": "blake2b-8",
        "loss_mask_alignment": "labels_shifted_with_pad",
        "eod_token_id": harmony_tokens.ENDOFTEXT,
        "roles_preserved": list(harmony_tokens.ROLES),
        "assistant_channels": list(harmony_tokens.CHANNELS),
    }


def config_hash(config: Mapping[str, Any]) -> str:
    """Return the sha256 of a config, in hex."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_kd_manifest(
    records: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    root: str,
    harmony_manifest: Path,
    harmony_dir: str,
    vocabulary: str,
    created_unix_s: int,
    git_sha: str | None,
    progress: Progress = SILENT,
) -> KDManifestSummary:
    """Write `manifest.json`, in a new folder, from the records of the shards in any order.

    A record is a mapping with `partition` ("00"), `config`, `code_version`, `counts`, `libraries`,
    `tokenizer`, `data_version` and `outputs` (path, bytes, sha256, rows), as
    `provenance.Record.model_dump` returns it. Raises GristmillError if there are no records, if
    they differ in config, code version, libraries or vocabulary, or if a record lacks a file.
    """
    shared = check_equal_configs(records, KDConfig)
    config = contract_config(shared["valid_fraction"])
    renderer = _renderer(common_libraries(records))
    ordered = sorted(records, key=lambda record: str(record["partition"]))
    splits = {split: _split(ordered, split, root) for split in _SPLITS}
    counts = {
        name: sum(int(record["counts"][name]) for record in ordered)
        for name in ("control_texts", "bad_rows")
    }
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "created_unix_s": created_unix_s,
        "git_sha": git_sha,
        "config_hash": config_hash(config),
        "input": _input(harmony_manifest, harmony_dir),
        "renderer": renderer,
        "tokenizer": _tokenizer(vocabulary, common_vocabulary(records)),
        "config": config,
        "splits": splits,
        "caps": {name: shared.get(name, -1) for name in ("max_rows", "max_tokens")},
        **counts,
        "data_versions": {str(each["partition"]): each.get("data_version") for each in ordered},
    }
    out.mkdir(parents=True)
    with progress.stage("write", "files", 1) as stage:
        write_json(out / MANIFEST, manifest)
        stage.advance(1)
    return KDManifestSummary(
        files={MANIFEST: content_note(manifest, [root])},
        shards=len(ordered),
        train_rows=splits["train"]["rows"],
        train_tokens=splits["train"]["tokens"],
        valid_rows=splits["valid"]["rows"],
        valid_tokens=splits["valid"]["tokens"],
        bad_rows=counts["bad_rows"],
        control_texts=counts["control_texts"],
    )


def _input(harmony_manifest: Path, harmony_dir: str) -> dict[str, Any]:
    return {
        "dataset_dir": harmony_dir,
        "manifest_path": f"{harmony_dir}/{harmony_manifest.name}",
        "manifest_sha256": sha256_file(harmony_manifest),
        "glob": GLOB,
    }


def _renderer(libraries: Mapping[str, str]) -> dict[str, Any]:
    return {
        "library": "openai-harmony",
        "version": libraries["openai-harmony"],
        "auto_drop_analysis": False,
        "roles_preserved": list(harmony_tokens.ROLES),
    }


def _tokenizer(vocabulary: str, sha256: str) -> dict[str, Any]:
    return {
        "type": "O200kHarmonyTokenizer",
        "model_path": vocabulary,
        "model_sha256": sha256,
        "vocab_size": harmony_tokens.PADDED_VOCABULARY,
    }


def _split(records: Sequence[Mapping[str, Any]], split: str, root: str) -> dict[str, Any]:
    """Return the inventory of a split. A shard without documents in it is not listed."""
    shards = [
        _shard(record, split, root) for record in records if int(record["counts"][f"{split}_rows"])
    ]
    return {
        "rows": sum(shard["rows"] for shard in shards),
        "tokens": sum(shard["tokens"] for shard in shards),
        "shards": shards,
    }


def _shard(record: Mapping[str, Any], split: str, root: str) -> dict[str, Any]:
    name = f"shard_{record['partition']}"
    rows = int(record["counts"][f"{split}_rows"])
    outputs = {output["path"]: output for output in record["outputs"]}
    files = {
        f"{suffix}_{kind}": f"{split}/{name}_{suffix}.{kind}"
        for suffix in megatron.DTYPES
        for kind in _KINDS
    }
    if absent := [path for path in files.values() if path not in outputs]:
        raise GristmillError(
            f"shard {record['partition']}: {rows} rows in {split}, but {absent[0]} is not "
            "among the outputs of its record: build the shard again"
        )
    return {
        "name": name,
        "rows": rows,
        "tokens": int(record["counts"][f"{split}_tokens"]),
        "paths": {key: f"{root}/{path}" for key, path in files.items()},
        "bytes": {key: outputs[path]["bytes"] for key, path in files.items()},
        "sha256": {key: outputs[path]["sha256"] for key, path in files.items()},
    }


def common_libraries(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of openai-harmony and tiktoken that rendered all shards."""
    return {
        library: _common(
            [record.get("libraries", {}).get(library) for record in records],
            f"versions of {library}",
        )
        for library in ("openai-harmony", "tiktoken")
    }


def common_vocabulary(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the sha256 of the vocabulary that all shards were built with."""
    return _common(
        [(record.get("tokenizer") or {}).get("sha256") for record in records], "vocabularies"
    )


def _common(values: Sequence[str | None], what: str) -> str:
    distinct = set(values)
    if len(distinct) > 1:
        raise GristmillError(
            f"shards were built with several {what}: "
            f"{', '.join(sorted(map(str, distinct)))}: build all of them with one"
        )
    (one,) = distinct
    if one is None:
        raise GristmillError(f"no record of a shard names its {what}: build the shards again")
    return one


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
    rows, gone = 0, links.forgotten.get(path, ())
    with (
        open_shard(path, links) as shard,
        progress.stage("digest", unit="rows", total=shard.rows) as stage,
    ):
        out.mkdir(parents=True)
        if not gone:
            shard.copy(out / path.name)
        else:
            _copy_kept(shard, out / path.name, gone)
        for batch in shard.batches(_BATCH_ROWS):
            for low, high in kept_runs(gone, rows, len(batch)):
                _add(digest, batch.slice(low, high - low), path, rows + low)
            rows += len(batch)
            stage.advance(len(batch))
    rows, groups = rows - len(gone), len(shard.groups)
    note = FileNote(rows=rows, content_sha256=digest.hexdigest())
    return HarmonySummary({path.name: note}, rows, 0, groups, 1)


def _copy_kept(shard: UntrustedParquet, target: Path, gone: Collection[int]) -> None:
    """Write a shard without some of its rows, each row group as one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    before = 0
    with pq.ParquetWriter(target, shard.schema, compression="zstd") as writer:
        for group, count in enumerate(shard.groups):
            table = pa.Table.from_batches(shard.batches(_BATCH_ROWS, row_groups=[group]))
            runs = kept_runs(gone, before, count)
            kept = pa.concat_tables(table.slice(low, high - low) for low, high in runs)
            writer.write_table(kept.cast(shard.schema), max(len(kept), 1))
            before += count


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

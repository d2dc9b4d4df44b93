"""`metadata.json` and `manifest.json` of a Harmony dataset, from the records of its shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.contract import GristmillError, Summary
from gristmill.provenance import config_fields
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders.harmony_rows import developer_message, system_message
from gristmill.synth.builders.manifest_files import (
    GLOB,
    HARMONY_SCHEMA,
    MANIFEST,
    METADATA,
    check_equal_configs,
    content_note,
    write_json,
)
from gristmill.synth.config import HarmonyConfig


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
    _check_config(records, config)
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


def _check_config(records: Sequence[Mapping[str, Any]], config: HarmonyConfig) -> None:
    shared = check_equal_configs(records, HarmonyConfig)
    own = config_fields(config)
    if different := [key for key in own if key in shared and shared[key] != own[key]]:
        raise GristmillError(
            f"the shards were built with another {', '.join(different)}: build them again"
        )


def _metadata(config: HarmonyConfig) -> dict[str, Any]:
    """Return the object of `metadata.json`."""
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

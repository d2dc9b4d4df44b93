"""`metadata.json` and `manifest.json` of a Harmony dataset, from its shards' records.

Source: `docs/formats/synth.md#harmony-manifest`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import FileNote, GristmillError, Summary
from gristmill.provenance import config_fields
from gristmill.synth.build.harmony import developer_message, system_message
from gristmill.synth.build.import_harmony import MANIFEST, METADATA, SCHEMA_VERSION
from gristmill.synth.config import HarmonyConfig

GLOB: Final = "synth_harmony_shard_*.parquet"


@dataclass(frozen=True)
class HarmonyManifestSummary(Summary):
    """What the manifest adds up to, over all shards."""

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
) -> HarmonyManifestSummary:
    """Write both files into `out` from the provenance records of the shards.

    records: of each shard a mapping with `config`, `outputs` (path, bytes, rows)
        and `counts` (rows, row_groups, skipped), as `provenance.Record.model_dump`
        gives them, in any order.
    dataset_dir: as it shall stand in the manifest, with the shards' paths below it.

    The files have the contract's keys in its order; more may follow at the end.
    Raises GristmillError where there are no records or their configs differ
    from each other or from `config`.
    """
    shared = check_equal_configs(records, ("dataset",))
    own = config_fields(config)
    if different := [key for key in own if key in shared and shared[key] != own[key]]:
        raise GristmillError(f"the shards were built with another {', '.join(different)}")
    out.mkdir(parents=True)
    metadata = {
        "dataset": config.dataset,
        "split": "train",
        "streaming": False,
        "num_shards": config.num_shards,
        # Of all shards, not of one: the reference has whichever wrote last.
        "shard_index": None,
        "max_rows": config.max_rows,
        "metadata_fields": list(config.metadata_fields),
        "system_message": system_message(config),
        "developer_message": developer_message(config),
    }
    shards = []
    for record in records:
        for output in record["outputs"]:
            shards.append(
                {
                    "path": f"{dataset_dir}/{output['path']}",
                    "bytes": output["bytes"],
                    "rows": output["rows"],
                    "row_groups": record["counts"]["row_groups"],
                    "sha256": output["sha256"],
                }
            )
    shards.sort(key=lambda shard: str(shard["path"]))
    columns = ("messages_json", "metadata_json", *config.metadata_fields)
    skipped = sum(int(record["counts"]["skipped"]) for record in records)
    total_rows = sum(int(shard["rows"]) for shard in shards)
    total_bytes = sum(int(shard["bytes"]) for shard in shards)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "created_unix_s": created_unix_s,
        "git_sha": git_sha,
        "dataset_dir": dataset_dir,
        "conversion": {
            key: value for key, value in metadata.items() if key not in ("shard_index", "max_rows")
        },
        "storage": {
            "format": "parquet",
            "glob": GLOB,
            "schema_arrow": "\n".join(f"{name}: string" for name in columns),
            "total_rows": total_rows,
            "total_bytes": total_bytes,
            "shards": shards,
            "skipped_rows": skipped,
            "max_rows": config.max_rows,
        },
    }
    write_json(out / METADATA, metadata)
    write_json(out / MANIFEST, manifest)
    return HarmonyManifestSummary(
        # Both carry times, paths or Parquet's stamps, so neither is payload.
        files={METADATA: FileNote(payload=False), MANIFEST: FileNote(payload=False)},
        shards=len(shards),
        rows=total_rows,
        bytes=total_bytes,
        skipped=skipped,
    )


def check_equal_configs(
    records: Sequence[Mapping[str, Any]], ignored: Sequence[str]
) -> dict[str, Any]:
    """The config that all records share, but for keys that cannot change the output.

    Raises GristmillError naming the partitions and keys that differ.
    """
    if not records:
        raise GristmillError("no shard has a record yet: materialize the shards first")
    first, *others = [
        {key: value for key, value in record["config"].items() if key not in ignored}
        | {"code_version": record.get("code_version")}
        for record in records
    ]
    for record, other in zip(records[1:], others, strict=True):
        keys = sorted(first.keys() | other.keys())
        if different := [key for key in keys if first.get(key) != other.get(key)]:
            told = ", ".join(f"{k} {first.get(k)!r} and {other.get(k)!r}" for k in different)
            raise GristmillError(
                f"shards {records[0].get('partition')} and {record.get('partition')} were built "
                f"from unequal configs: {told}: build all of them with one config"
            )
    return first


def write_json(path: Path, value: object) -> None:
    """JSON in the manifests' form: indent 2, ASCII, keys as given, final newline."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="ascii")

"""`manifest.json` of a Megatron dataset, from the records of its shards.

Source: `docs/formats/synth.md#kd-manifest`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import FileNote, GristmillError, Summary
from gristmill.hashing import sha256_file
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders.manifest_files import (
    GLOB,
    MANIFEST,
    check_equal_configs,
    content_note,
    write_json,
)
from gristmill.synth.config import KDConfig
from gristmill.synth.format import aligned, harmony_tokens

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
    return _summary(len(ordered), splits, counts, content_note(manifest, [root]))


def _summary(
    shards: int,
    splits: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, int],
    note: FileNote,
) -> KDManifestSummary:
    return KDManifestSummary(
        files={MANIFEST: note},
        shards=shards,
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
        for suffix in aligned.DTYPES
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

"""`manifest.json` over all shards of a Megatron dataset, from their records.

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
from gristmill.synth.build.harmony_manifest import GLOB, check_equal_configs, write_json
from gristmill.synth.build.kd_shard import SUFFIXES
from gristmill.synth.format import harmony_tokens

SCHEMA_VERSION: Final = "synth_kd_v1"
_KINDS: Final = ("bin", "idx")
_SPLITS: Final = ("train", "valid")
# Neither place of the vocabulary nor number of processes changes a byte.
_IGNORED: Final = ("vocabulary", "workers")


@dataclass(frozen=True)
class KDManifestSummary(Summary):
    """What the manifest adds up to, over all shards."""

    shards: int
    train_rows: int
    train_tokens: int
    valid_rows: int
    valid_tokens: int
    bad_rows: int
    control_texts: int


def contract_config(valid_fraction: float) -> dict[str, Any]:
    """The `config` object of the manifest. Caps are not in it, as in the reference."""
    return {
        "valid_fraction": valid_fraction,
        "hash": "blake2b-8",
        "loss_mask_alignment": "labels_shifted_with_pad",
        "eod_token_id": harmony_tokens.ENDOFTEXT,
        "roles_preserved": list(harmony_tokens.ROLES),
        "assistant_channels": list(harmony_tokens.CHANNELS),
    }


def config_hash(config: Mapping[str, Any]) -> str:
    """sha256 of the config as ASCII JSON with sorted keys and no spaces."""
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
) -> KDManifestSummary:
    """Write `manifest.json` into `out` from the provenance records of the shards.

    records: of each shard a mapping with `partition` ("00"), `config`, `counts`,
        `libraries`, `tokenizer`, `outputs` (path, bytes, sha256, rows), as
        `provenance.Record.model_dump` gives them, in any order.
    root, harmony_dir, vocabulary: paths as they shall stand in the manifest.
    harmony_manifest: the input's manifest, whose hash is recorded.

    Raises GristmillError where there are no records, or their configs,
    libraries or vocabularies differ.
    """
    shared = check_equal_configs(records, _IGNORED)
    libraries = common_libraries(records)
    vocabulary_sha256 = common_vocabulary(records)
    config = contract_config(shared["valid_fraction"])
    ordered = sorted(records, key=lambda record: str(record["partition"]))
    splits = {split: _split(ordered, split, root) for split in _SPLITS}
    counts = {
        name: sum(int(record["counts"][name]) for record in ordered)
        for name in ("control_texts", "bad_rows")
    }
    out.mkdir(parents=True)
    write_json(
        out / "manifest.json",
        {
            "schema_version": SCHEMA_VERSION,
            "created_unix_s": created_unix_s,
            "git_sha": git_sha,
            "config_hash": config_hash(config),
            "input": {
                "dataset_dir": harmony_dir,
                "manifest_path": f"{harmony_dir}/{harmony_manifest.name}",
                "manifest_sha256": sha256_file(harmony_manifest),
                "glob": GLOB,
            },
            "renderer": {
                "library": "openai-harmony",
                "version": libraries["openai-harmony"],
                "auto_drop_analysis": False,
                "roles_preserved": list(harmony_tokens.ROLES),
            },
            "tokenizer": {
                "type": "O200kHarmonyTokenizer",
                "model_path": vocabulary,
                "model_sha256": vocabulary_sha256,
                "vocab_size": harmony_tokens.PADDED_VOCABULARY,
            },
            "config": config,
            "splits": splits,
            "caps": {name: shared.get(name, -1) for name in ("max_rows", "max_tokens")},
            **counts,
            "data_versions": {
                str(record["partition"]): record.get("data_version") for record in ordered
            },
        },
    )
    return KDManifestSummary(
        files={"manifest.json": FileNote(payload=False)},
        shards=len(ordered),
        train_rows=splits["train"]["rows"],
        train_tokens=splits["train"]["tokens"],
        valid_rows=splits["valid"]["rows"],
        valid_tokens=splits["valid"]["tokens"],
        bad_rows=counts["bad_rows"],
        control_texts=counts["control_texts"],
    )


def _split(records: Sequence[Mapping[str, Any]], split: str, root: str) -> dict[str, Any]:
    """One split's inventory; a shard without documents in it is absent."""
    shards = []
    for record in records:
        name = f"shard_{record['partition']}"
        outputs = {output["path"]: output for output in record["outputs"]}
        files = {
            f"{suffix}_{kind}": f"{split}/{name}_{suffix}.{kind}"
            for suffix in SUFFIXES
            for kind in _KINDS
        }
        if not (rows := int(record["counts"][f"{split}_rows"])):
            continue
        if absent := [path for path in files.values() if path not in outputs]:
            raise GristmillError(
                f"shard {record['partition']}: {rows} rows in {split}, but {absent[0]} is not "
                "among the outputs of its record: build the shard again"
            )
        shards.append(
            {
                "name": name,
                "rows": rows,
                "tokens": int(record["counts"][f"{split}_tokens"]),
                "paths": {key: f"{root}/{path}" for key, path in files.items()},
                "bytes": {key: outputs[path]["bytes"] for key, path in files.items()},
                "sha256": {key: outputs[path]["sha256"] for key, path in files.items()},
            }
        )
    return {
        "rows": sum(shard["rows"] for shard in shards),
        "tokens": sum(shard["tokens"] for shard in shards),
        "shards": shards,
    }


def common_libraries(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The version of openai-harmony and tiktoken that rendered all shards.

    GristmillError where shards were rendered by unequal versions, or a record
    names none.
    """
    return {
        library: _common(
            [record.get("libraries", {}).get(library) for record in records],
            f"versions of {library}",
        )
        for library in ("openai-harmony", "tiktoken")
    }


def common_vocabulary(records: Sequence[Mapping[str, Any]]) -> str:
    """sha256 of the vocabulary that all shards were built with; GristmillError as above."""
    return _common(
        [(record.get("tokenizer") or {}).get("sha256") for record in records], "vocabularies"
    )


def _common(found: Sequence[str | None], what: str) -> str:
    distinct = set(found)
    if len(distinct) > 1:
        raise GristmillError(
            f"shards were built with several {what}: "
            f"{', '.join(sorted(map(str, distinct)))}: build all of them with one"
        )
    (one,) = distinct
    if one is None:
        raise GristmillError(f"no record of a shard names its {what}: build the shards again")
    return one

"""Laws of published SYNTH folders that need the records beside the files.

What must hold of the files alone belongs to `laws.py`. Source:
`docs/formats/synth.md#manifest-laws`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.provenance import Record
from gristmill.synth.build import kd_manifest
from gristmill.synth.build.harmony_manifest import check_equal_configs
from gristmill.synth.build.import_harmony import MANIFEST, METADATA, unreadable
from gristmill.synth.format import holdout, parquet, trace
from gristmill.synth.laws import shards as laws

_IGNORED: Final = ("vocabulary", "workers")


def kd_shard_laws(root: Path, partition: str | None) -> Iterator[Violation]:
    """`laws.kd_laws` of one shard, with the share that its record says it was split at."""
    path = provenance.record_path(root, partition, shared=True)
    fraction = provenance.read_record(path).config["valid_fraction"] if path.exists() else None
    yield from laws.kd_laws(root, partition, fraction)


def harmony_manifest_laws(root: Path, partition: str | None) -> Iterator[Violation]:
    """Both files are JSON objects of this schema.

    Sizes and rows are not compared: an adopted manifest may speak of the folder
    that its shards were cut from. `partition` is the name of its own record.
    """
    for name in (MANIFEST, METADATA):
        yield from unreadable(root / name)


def kd_manifest_laws(
    root: Path, partition: str | None, shards: Path | None = None
) -> Iterator[Violation]:
    """The manifest says what the shards' records say, and no conversation is in both splits.

    shards: the folder with the shards and their records, where the manifest does
        not stand in it yet. `partition` is the name of the manifest's own record.
    """
    if broken := list(unreadable(root / MANIFEST)):
        yield from broken
        return
    shards = shards or root
    manifest = json.loads((root / MANIFEST).read_bytes())
    records = shard_records(shards, skip=partition)
    try:
        check_equal_configs([record.model_dump(mode="json") for record in records], _IGNORED)
    except GristmillError as error:
        yield Violation("equal configs", MANIFEST, str(error))
        return
    try:
        if manifest["config_hash"] != kd_manifest.config_hash(manifest["config"]):
            yield Violation("config hash", MANIFEST, "is not the hash of the config beside it")
        for name in laws.SPLITS:
            yield from _inventory(name, manifest["splits"][name], records)
    except (KeyError, TypeError, AttributeError) as error:
        yield Violation("schema", MANIFEST, f"is no manifest of Megatron datasets: {error!r}")
    yield from _disjoint(shards, [str(record.partition) for record in records])


def shard_records(root: Path, skip: str | None = None) -> list[Record]:
    """The records of the shards of a shared folder by partition, but for that of `skip`."""
    folder = root / provenance.SHARED_RECORDS
    paths = sorted(path for path in folder.glob("*.json") if path.stem != skip)
    return [provenance.read_record(path) for path in paths]


def _inventory(
    name: str, inventory: Mapping[str, Any], records: list[Record]
) -> Iterator[Violation]:
    """Every shard of one split as its record has it, and no other."""
    listed = {shard["name"].removeprefix("shard_"): shard for shard in inventory["shards"]}
    for record in records:
        outputs = {output.path: output for output in record.outputs}
        shard = listed.pop(str(record.partition), None)
        if shard is None:
            if record.counts[f"{name}_rows"]:
                yield Violation("inventory", MANIFEST, f"{name} lacks shard {record.partition}")
            continue
        found = {
            key: outputs.get(f"{name}/{Path(path).name}") for key, path in shard["paths"].items()
        }
        other = [
            *(
                key
                for key, output in found.items()
                if output is None
                or (output.bytes, output.sha256) != (shard["bytes"][key], shard["sha256"][key])
            ),
            *(key for key in ("rows", "tokens") if shard[key] != record.counts[f"{name}_{key}"]),
        ]
        if other:
            yield Violation(
                "inventory",
                MANIFEST,
                f"{name} shard {record.partition} has other {', '.join(other)} in its record: "
                "if the shard was built since, materialize the manifest again",
            )
    for number in listed:
        yield Violation("inventory", MANIFEST, f"{name} lists shard {number}, which has no record")


def _disjoint(root: Path, numbers: list[str]) -> Iterator[Violation]:
    """One cut through the synth_id hash divides train from valid in all shards together."""
    highest_valid, lowest_train = -1, 1 << 64
    for number in numbers:
        try:
            for name, synth_id in _split_ids(root / trace.path(number)):
                value = holdout.value(synth_id)
                if name == "valid":
                    highest_valid = max(highest_valid, value)
                else:
                    lowest_train = min(lowest_train, value)
        except (BadInput, UnicodeDecodeError, AttributeError) as error:
            yield Violation("trace", trace.path(number), str(error))
            return
        if highest_valid >= lowest_train:
            yield Violation(
                "disjoint splits",
                trace.path(number),
                "no cut in the synth_id hash divides train from valid over the shards",
            )
            return


def _split_ids(file: Path) -> Iterator[tuple[str, str]]:
    """Split and synth_id of every document of a trace file."""
    with trace.opened(file) as found:
        for batch in parquet.batches(file, found, 1 << 14, ["split", "synth_id"]):
            names, ids = (column.to_pylist() for column in batch.columns)
            yield from zip(names, ids, strict=True)

"""Laws of the manifest of a Megatron dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.families import Subject
from gristmill.provenance import Record
from gristmill.synth.builders import manifests
from gristmill.synth.builders.manifests import MANIFEST, check_equal_configs, json_violations
from gristmill.synth.config import KDConfig
from gristmill.synth.format import parquet, trace
from gristmill.synth.laws.kd_shard import HashBounds
from gristmill.synth.laws.shards import SPLITS, shard_records

_BATCH_ROWS = 1 << 14


def law(subject: Subject) -> Iterator[Violation]:
    """Yield the violations of a manifest: the shards' records, and no id in both splits.

    Raises GristmillError if a record cannot be read.
    """
    path = subject.folder / MANIFEST
    if broken := list(json_violations(path)):
        yield from broken
        return
    # Before it is published, the manifest is alone in its folder, and its inputs are the shards.
    is_published = (subject.folder / provenance.SHARED_RECORDS).is_dir()
    shards = subject.folder if is_published else subject.inputs[0]
    manifest = json.loads(path.read_bytes())
    records = shard_records(shards, skip=subject.partition)
    try:
        dumped = [record.model_dump(mode="json") for record in records]
        check_equal_configs(dumped, KDConfig)
    except GristmillError as error:
        yield Violation("equal configs", MANIFEST, str(error))
        return
    yield from _against_records(manifest, records)
    yield from _disjoint(shards, [str(record.partition) for record in records])


def _against_records(manifest: Mapping[str, Any], records: Sequence[Record]) -> Iterator[Violation]:
    try:
        if manifest["config_hash"] != manifests.config_hash(manifest["config"]):
            yield Violation("config hash", MANIFEST, "config_hash is not the hash of config")
        for split in SPLITS:
            yield from _inventory(split, manifest["splits"][split], records)
    except (KeyError, TypeError, AttributeError) as error:
        yield Violation("schema", MANIFEST, f"is not a manifest of Megatron datasets: {error!r}")


def _inventory(
    split: str, inventory: Mapping[str, Any], records: Sequence[Record]
) -> Iterator[Violation]:
    """Each shard of a split is listed as in its record, and no other shard is listed."""
    listed = {shard["name"].removeprefix("shard_"): shard for shard in inventory["shards"]}
    for record in records:
        shard = listed.pop(str(record.partition), None)
        if shard is None:
            if record.counts[f"{split}_rows"]:
                yield Violation("inventory", MANIFEST, f"{split} lacks shard {record.partition}")
        elif different := _differences(split, shard, record):
            yield Violation(
                "inventory",
                MANIFEST,
                f"{split} shard {record.partition}: its record has other {', '.join(different)}: "
                "if the shard was rebuilt after the manifest, materialize the manifest again",
            )
    for number in listed:
        yield Violation("inventory", MANIFEST, f"{split} lists shard {number}, which has no record")


def _differences(split: str, shard: Mapping[str, Any], record: Record) -> list[str]:
    """Return the files and counts of a listed shard that are not those of its record."""
    outputs = {output.path: output for output in record.outputs}
    different = []
    for key, path in shard["paths"].items():
        output = outputs.get(f"{split}/{Path(path).name}")
        listed = (shard["bytes"][key], shard["sha256"][key])
        if output is None or (output.bytes, output.sha256) != listed:
            different.append(key)
    counts = ("rows", "tokens")
    return different + [key for key in counts if shard[key] != record.counts[f"{split}_{key}"]]


def _disjoint(root: Path, numbers: Sequence[str]) -> Iterator[Violation]:
    """One value of the synth_id hash divides train from valid in all shards together."""
    bounds = HashBounds()
    for number in numbers:
        try:
            _add_ids(root / trace.path(number), bounds)
        except (BadInput, UnicodeDecodeError, AttributeError) as error:
            yield Violation("trace", trace.path(number), str(error))
            return
        if not bounds.divide():
            yield Violation(
                "disjoint splits",
                trace.path(number),
                "no value of the synth_id hash divides train from valid over all shards",
            )
            return


def _add_ids(file: Path, bounds: HashBounds) -> None:
    with trace.opened(file) as opened:
        for batch in parquet.batches(file, opened, _BATCH_ROWS, ["split", "synth_id"]):
            splits, ids = (column.to_pylist() for column in batch.columns)
            for split in SPLITS:
                members = (x for name, x in zip(splits, ids, strict=True) if name == split)
                bounds.add(split, members)

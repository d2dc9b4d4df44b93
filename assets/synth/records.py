"""Names and records that the SYNTH assets share: which folder, which record lies where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill import provenance
from gristmill.provenance import Input, Record
from gristmill.synth.build.source import NUMBERS
from resources import Lake

RAW, READY = "synth/raw", "synth/ready_harmony"
HARMONY, HARMONY_MANIFEST = "synth/harmony", "synth/harmony_manifest"
FOLDER = "synth_harmony"
# The record of a manifest lies among those of the shards that share its folder.
MANIFEST_RECORD = "manifest"
MANIFEST_VERSION = "1"
"""Code version of both manifests."""


@dataclass(frozen=True)
class ManifestOf:
    """The records that a manifest is written from: digest by partition."""

    records: Mapping[str, str]


def named(lake: Lake, *names: str) -> str:
    """A path as manifests have it: from the data root's own name on, `data/megatron/..`."""
    return "/".join((lake.root.name, *names))


def record_path(lake: Lake, artifact: str, partition: str) -> Path:
    """Where the record of a shard lies, in the folder that the shards share."""
    return provenance.record_path(lake.root / artifact, partition, shared=True)


def shard_records(lake: Lake, artifact: str, asset: str) -> list[Record]:
    """The records of all four shards. GristmillError names the first that is not there."""
    records = []
    for number in NUMBERS:
        lake.published(artifact, asset, number)
        records.append(provenance.read_record(record_path(lake, artifact, number)))
    return records


def manifest_of(records: Sequence[Record]) -> ManifestOf:
    """The config of a manifest, which names the digests of the records it is written from."""
    return ManifestOf({str(record.partition): record.digest for record in records})


def inputs_of(lake: Lake, record: Record) -> list[Input]:
    """All inputs of a shard's record."""
    path = record_path(lake, record.artifact, str(record.partition))
    return provenance.read_inputs(record, path)

"""Names and records that the SYNTH assets share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.provenance import Input, Record
from gristmill.synth.builders.source import NUMBERS
from resources import Lake, NotRebuilt

RAW, READY = "synth/raw", "synth/ready_harmony"
HARMONY, HARMONY_MANIFEST = "synth/harmony", "synth/harmony_manifest"
FOLDER = "synth_harmony"
# Name of the manifest's record, which is in one folder with the records of the shards.
MANIFEST_RECORD = "manifest"
MANIFEST_VERSION = "2"
"""Code version of both manifests."""


@dataclass(frozen=True)
class ManifestConfig:
    """The config of a manifest: the records that it is written from.

    records: digest of each record, by partition.
    """

    records: Mapping[str, str]


def manifest_path(lake: Lake, *names: str) -> str:
    """Returns a path as manifests contain it, from the data root's name on: `data/megatron/...`.

    lake: the data root.
    names: the path's names below the data root.
    """
    return "/".join((lake.root.name, *names))


def record_path(lake: Lake, artifact: str, partition: str) -> Path:
    """Returns the path of a shard's record in the folder that the shards share.

    lake: the data root.
    artifact: path of the folder relative to the data root.
    partition: number of the shard, or `manifest`.
    """
    return provenance.record_path(lake.root / artifact, partition, shared=True)


def shard_records(lake: Lake, artifact: str, asset: str) -> list[Record]:
    """Returns the records of all shards.

    lake: the data root.
    artifact: path of the folder that the shards share, relative to the data root.
    asset: key of the shards' asset.

    Raises NotBuilt for the first shard that is not published.
    """
    records = []
    for number in NUMBERS:
        lake.published(artifact, asset, number)
        records.append(provenance.read_record(record_path(lake, artifact, number)))
    return records


def manifest_config(records: Sequence[Record]) -> ManifestConfig:
    """Returns the config of a manifest.

    records: the records of the shards.
    """
    return ManifestConfig({str(record.partition): record.digest for record in records})


def check_equal_configs(records: Sequence[Record], config: type[Any]) -> None:
    """Raise NotRebuilt if two shards were built with configs that may not differ.

    records: the records of the shards.
    config: the class of the configs; its fields that change no byte may differ.
    """
    from gristmill.synth.builders import manifest_files

    try:
        manifest_files.check_equal_configs(
            [record.model_dump(mode="json") for record in records], config
        )
    except GristmillError as error:
        raise NotRebuilt(str(error)) from error


def inputs_of(lake: Lake, record: Record) -> list[Input]:
    """Returns all inputs of a shard's record.

    lake: the data root.
    record: the record of a shard.
    """
    path = record_path(lake, record.artifact, str(record.partition))
    return provenance.read_inputs(record, path)


def drop_of_shard(lake: Lake, record: Record) -> Path | None:
    """Returns the drop that a Harmony shard was built from; None if it is gone.

    lake: the data root.
    record: the record of the shard.
    """
    first = next((item for item in inputs_of(lake, record) if item.path), None)
    folder = (lake.root / str(first.path)).parent if first else None
    return folder if folder and folder.is_dir() else None

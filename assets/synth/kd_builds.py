"""The builds of the Megatron datasets and their manifests: inputs, config, builder and laws."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from assets import configs
from assets.synth.records import (
    FOLDER,
    HARMONY,
    HARMONY_MANIFEST,
    MANIFEST_RECORD,
    MANIFEST_VERSION,
    check_equal_configs,
    drop_of_shard,
    inputs_of,
    manifest_config,
    manifest_path,
    record_path,
    shard_records,
)
from gristmill import provenance
from gristmill.contract import GristmillError, Summary
from gristmill.provenance import Output, Record, Tokenizer, environment, raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.synth import KDConfig
from gristmill.synth.builders.source import NUMBERS
from gristmill.synth.family import SMOKE_TABLE
from gristmill.vocabularies.pinned import O200K
from resources import Lake, NotRebuilt

# A token takes 4 bytes, its two sidecars 1 byte each; the parts take the same once more.
_GROWTH = 8


@dataclass(frozen=True)
class Dataset:
    """One of the two Megatron datasets: all conversations, or the first ones of each shard.

    prefix: first part of the keys of its assets.
    folder: path of the dataset relative to the data root.
    defaults: values that replace the defaults of KDConfig, by field.
    group: its group in the UI.
    kinds: labels of its assets, by which they differ from those of the other dataset.
    """

    prefix: str
    folder: str
    defaults: Mapping[str, Any]
    group: str
    kinds: Collection[str] = ()

    @property
    def shards(self) -> str:
        """Key of the asset for the shards."""
        return f"{self.prefix}/kd_shards"

    @property
    def manifest(self) -> str:
        """Key of the asset for the manifest."""
        return f"{self.prefix}/kd_manifest"


FULL = Dataset("synth", "megatron/synth_kd_v1", {}, "synth/full")
SMOKE = Dataset(
    "synth_smoke", "megatron/synth_kd_v1_smoke", SMOKE_TABLE.defaults, "synth/smoke", {"smoke"}
)


def kd_build(lake: Lake, dataset: Dataset, run: BaseModel, key: str | None) -> Build:
    """Returns the build of the Megatron datasets of one Harmony shard.

    lake: the data root.
    dataset: which of the two datasets.
    run: the launchpad's config.
    key: number of the shard, as `0`.

    Raises GristmillError if the Harmony shard or the vocabulary is not published, or if the
    shard has no rows.
    """
    from gristmill.synth.builders import harmony_shard, kd_shard
    from gristmill.synth.laws.kd_shard import kd_laws

    source = lake.published(FOLDER, HARMONY, key)
    record = provenance.read_record(record_path(lake, FOLDER, str(key)))
    shard = lake.root / FOLDER / harmony_shard.shard_name(str(key))
    output = _output_of(shard, record)
    place = Path("tokenizer") / O200K.relative
    vocabulary = lake.published("tokenizer", f"tokenizers/{O200K.name}", O200K.name)
    # The record has the path below the data root, the builder needs the absolute path.
    config = configs.resolve(
        KDConfig,
        lake.settings(dataset.shards, drop_of_shard(lake, record)),
        run,
        defaults=dataset.defaults,
        filled_in={"vocabulary": place},
    )
    resolved = replace(config, vocabulary=lake.root / place)
    return Build(
        root=lake.root,
        artifact=dataset.folder,
        asset=dataset.shards,
        partition=key,
        code_version=KDConfig.CODE_VERSION,
        config=config,
        inputs=[source, vocabulary],
        make=lambda attempt: kd_shard.build_kd_shard(
            shard, attempt.out, resolved, attempt.parts, progress=attempt.progress
        ),
        laws=lambda folder: kd_laws(folder, key, config.valid_fraction),
        shared=True,
        tokenizer=Tokenizer(name=O200K.name, path=place.as_posix(), sha256=O200K.sha256),
        space=0 if config.capped else _GROWTH * output.bytes,
    )


def kd_manifest_build(lake: Lake, dataset: Dataset, key: str | None) -> Build:
    """Returns the build of a Megatron dataset's `manifest.json`.

    lake: the data root.
    dataset: which of the two datasets.
    key: not used, since the manifest has no partitions.

    Raises NotBuilt if a shard is not published, NotRebuilt if its inputs were rebuilt since, if the
    shards have several configs, or if the Harmony manifest is older than the Harmony shards.
    """
    from gristmill.synth.builders import kd_manifest
    from gristmill.synth.builders.manifest_files import MANIFEST
    from gristmill.synth.laws.kd_manifest import kd_manifest_laws

    records = shard_records(lake, dataset.folder, dataset.shards)
    for record in records:
        _check_current(lake, record)
    check_equal_configs(records, KDConfig)
    _check_manifest_current(lake)
    harmony_manifest = lake.root / FOLDER / MANIFEST
    if not harmony_manifest.is_file():
        raise GristmillError(
            f"{harmony_manifest}: is gone: run `gristmill materialize {HARMONY_MANIFEST} --rebuild`"
        )
    inputs = [lake.published(dataset.folder, dataset.shards, number) for number in NUMBERS]
    inputs.append(lake.published(FOLDER, HARMONY_MANIFEST, MANIFEST_RECORD))
    # Also as a file: the manifest has its sha256, but its data version leaves out times.
    inputs += raw_inputs.raw_inputs(lake.root, [harmony_manifest], HARMONY_MANIFEST, None, known={})

    def make(attempt: Attempt) -> Summary:
        return kd_manifest.write_kd_manifest(
            [record.model_dump(mode="json") for record in records],
            attempt.out,
            root=manifest_path(lake, dataset.folder),
            harmony_manifest=harmony_manifest,
            harmony_dir=manifest_path(lake, FOLDER),
            vocabulary=manifest_path(lake, "tokenizer", O200K.relative),
            created_unix_s=int(time.time()),
            git_sha=environment.git_sha(),
            progress=attempt.progress,
        )

    folder = lake.root / dataset.folder
    return Build(
        root=lake.root,
        artifact=dataset.folder,
        asset=dataset.manifest,
        partition=MANIFEST_RECORD,
        code_version=MANIFEST_VERSION,
        config=manifest_config(records),
        inputs=inputs,
        make=make,
        laws=lambda out: kd_manifest_laws(out, MANIFEST_RECORD, shards=folder),
        shared=True,
    )


def _output_of(path: Path, record: Record) -> Output:
    """The recorded file of a shard. Raises GristmillError if the shard has no rows."""
    output = next((item for item in record.outputs if item.path == path.name), None)
    if output is None:
        raise GristmillError(
            f"{path}: the shard has no rows, so that nothing can be built from it: see the counts "
            f"of {record.asset} {record.partition}"
        )
    return output


def _check_current(lake: Lake, record: Record) -> None:
    """Raise NotRebuilt if a shard's inputs were rebuilt since."""
    for item in inputs_of(lake, record):
        current = provenance.published_version(lake.root / str(item.path), item.partition)
        if current != item.data_version:
            raise NotRebuilt(
                f"{record.asset} {record.partition}: {item.asset} {item.partition} was rebuilt "
                f"since: materialize {record.asset} {record.partition} again"
            )


def _check_manifest_current(lake: Lake) -> None:
    path = record_path(lake, FOLDER, MANIFEST_RECORD)
    lake.published(FOLDER, HARMONY_MANIFEST, MANIFEST_RECORD)
    config = provenance.config_fields(manifest_config(shard_records(lake, FOLDER, HARMONY)))
    if provenance.read_record(path).config != config:
        raise NotRebuilt(
            f"{FOLDER}/manifest.json: older than the shards: materialize {HARMONY_MANIFEST} again"
        )

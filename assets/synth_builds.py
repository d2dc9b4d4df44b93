"""What each partition of the SYNTH assets is built from, how, and where it goes.

How the assets look in Dagster belongs to `synth.py`.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from assets import configs
from gristmill import environment, laws, provenance, rawfiles
from gristmill.artifact import Attempt, Build
from gristmill.contract import BadInput, GristmillError, Summary
from gristmill.parts import sha256_file
from gristmill.provenance import Input, Record, Tokenizer
from gristmill.synth import HarmonyConfig, KDConfig, raw, sources
from gristmill.synth.sources import NUMBERS, Source
from gristmill.tokenizers import O200K
from resources import Lake

RAW, READY = "synth/raw", "synth/ready_harmony"
HARMONY, HARMONY_MANIFEST = "synth/harmony", "synth/harmony_manifest"
FOLDER = "synth_harmony"
# The record of a manifest lies among those of the shards that share its folder.
MANIFEST_RECORD = "manifest"
_ASSETS = {sources.RAW: RAW, sources.READY: READY}
# Tokens take 4 bytes and their two sidecars 1 each; as parts they lie there twice.
_GROWTH = 8


@dataclass(frozen=True)
class ManifestOf:
    """The records that a manifest is written from: digest by partition."""

    records: Mapping[str, str]


@dataclass(frozen=True)
class Dataset:
    """One of the two Megatron datasets: all conversations, or the first of each shard.

    defaults: of its shards' config, where they are not KDConfig's own.
    """

    prefix: str
    folder: str
    defaults: Mapping[str, Any]

    @property
    def shards(self) -> str:
        return f"{self.prefix}/kd_shards"

    @property
    def manifest(self) -> str:
        return f"{self.prefix}/kd_manifest"


FULL = Dataset("synth", "megatron/synth_kd_v1", {})
SMOKE = Dataset(
    "synth_smoke", "megatron/synth_kd_v1_smoke", {"valid_fraction": 0.1, "max_rows": 250}
)


def raw_file_count(lake: Lake, folder: Path) -> int:
    """How many raw files make a drop complete. BadInput where the setting is no number."""
    count = lake.settings(RAW, folder).get("files", raw.FILES)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadInput(
            "gristmill.toml", f"[synth.raw] files = {count!r}: must be a number of files"
        )
    return count


def source_of(lake: Lake) -> Source:
    """The drop that `synth_harmony/` is made from; GristmillError where that is not clear."""
    named = lake.settings(HARMONY).get("drop")
    return sources.chosen(lake.root / "drops", named, partial(raw_file_count, lake))


def at_hand(lake: Lake) -> Sequence[str]:
    """The shards that a drop at hand feeds: all of them, or none."""
    try:
        source_of(lake)
    except GristmillError:
        return ()  # which drop is refused, and why, the inboxes tell
    return NUMBERS


def refusal(path: Path) -> str | None:
    """Why the drop at `path`, in either inbox, is not built from now; None where it is."""
    lake = Lake(data_root=str(path.parents[2]))
    mine = Source(path.parent.name, path)
    try:
        if reason := sources.refusal(mine, raw_file_count(lake, path)):
            return reason
        if (used := source_of(lake)) != mine:
            return f"{used.name} is the drop in use: name this one in gristmill.toml to change that"
    except GristmillError as error:
        return str(error)
    return None


def harmony_build(lake: Lake, run: dg.Config, key: str | None) -> Build:
    """Harmony shard `key`, converted from its run of the raw files or taken from a ready folder."""
    from gristmill.synth import harmony

    source, number = source_of(lake), str(key)
    build = partial(
        Build,
        root=lake.root,
        artifact=FOLDER,
        asset=HARMONY,
        partition=key,
        code_version=harmony.CODE_VERSION,
        laws=lambda folder: laws.check(HARMONY, folder, key),
        shared=True,
    )
    if source.inbox == sources.READY:
        return _adopted(lake, run, source, number, build)
    settings = dict(lake.settings(HARMONY, source.folder))
    settings.pop("drop", None)
    config = configs.resolve(HarmonyConfig, settings, run)
    if config.num_shards != len(NUMBERS):
        raise BadInput("configuration", f"num_shards {config.num_shards}: the partitions are four")
    if config.developer == "":
        config = replace(config, developer=None)
    files = raw.complete_files(source.folder, raw_file_count(lake, source.folder))
    inputs = _raw_inputs(lake, source, raw.contiguous_run(files, int(number)), number)
    return build(
        config=config,
        inputs=inputs,
        make=lambda attempt: harmony.to_harmony(files, attempt.out, int(number), config),
        space=sum(item.bytes or 0 for item in inputs) if config.max_rows < 0 else 0,
    )


def _adopted(
    lake: Lake, run: dg.Config, source: Source, number: str, build: "partial[Build]"
) -> Build:
    from gristmill.synth import adoption

    if said := [name for name, value in run.model_dump().items() if value is not None]:
        raise BadInput(
            "configuration", f"{said[0]}: the shards of {source.name} are taken as they are"
        )
    inputs = _raw_inputs(lake, source, [adoption.shards(source.folder)[number]], number)
    return build(
        config=adoption.AdoptConfig(source.name),
        inputs=inputs,
        make=lambda attempt: adoption.adopt_shard(source.folder, attempt.out, number),
        space=sum(item.bytes or 0 for item in inputs),
    )


def _raw_inputs(lake: Lake, source: Source, files: Iterable[Path], record: str) -> list[Input]:
    """Files of a drop as inputs; those that the record of that name knows are not hashed again."""
    known = rawfiles.known_hashes(provenance.record_path(lake.root / FOLDER, record, shared=True))
    return rawfiles.raw_inputs(
        lake.root, files, _ASSETS[source.inbox], source.folder.name, known=known
    )


def harmony_manifest_build(lake: Lake, key: str | None) -> Build:
    """`metadata.json` and `manifest.json` of the Harmony dataset, from its shards' records."""
    from gristmill.synth import adoption, harmony_manifest

    records = shard_records(lake, FOLDER, HARMONY)
    source = _common_source(lake, records)
    inputs = [lake.published(FOLDER, HARMONY, number) for number in NUMBERS]
    if source.inbox == sources.READY:
        files = [source.folder / adoption.MANIFEST, source.folder / adoption.METADATA]
        inputs += _raw_inputs(lake, source, files, MANIFEST_RECORD)

    def make(attempt: Attempt) -> Summary:
        if source.inbox == sources.READY:
            return adoption.adopt_manifest(source.folder, attempt.out)
        return harmony_manifest.write_harmony_manifest(
            [record.model_dump(mode="json") for record in records],
            attempt.out,
            HarmonyConfig(**records[0].config),
            dataset_dir=_named(lake, FOLDER),
            created_unix_s=int(time.time()),
            git_sha=environment.git_sha(),
        )

    return Build(
        root=lake.root,
        artifact=FOLDER,
        asset=HARMONY_MANIFEST,
        partition=MANIFEST_RECORD,
        code_version=MANIFEST_VERSION,
        config=_manifest_of(records),
        inputs=inputs,
        make=make,
        laws=lambda folder: laws.check(HARMONY_MANIFEST, folder, MANIFEST_RECORD),
        shared=True,
    )


MANIFEST_VERSION = "1"
"""Code version of both manifests."""


def kd_build(lake: Lake, dataset: Dataset, run: dg.Config, key: str | None) -> Build:
    """Megatron datasets of Harmony shard `key`."""
    from gristmill.synth import harmony, kd
    from gristmill.synth import laws as synth_laws

    source = lake.published(FOLDER, HARMONY, key)
    record = provenance.read_record(_record_path(lake, FOLDER, str(key)))
    shard = lake.root / FOLDER / harmony.shard_name(str(key))
    _check_as_recorded(shard, record)
    place = Path("tokenizer") / O200K.relative
    vocabulary = lake.published("tokenizer", f"tokenizers/{O200K.name}", O200K.name)
    # The record keeps the place below the data root, the builder needs the whole path.
    settings = {**dataset.defaults, **lake.settings(dataset.shards, _drop_of(lake, record))}
    config = configs.resolve(KDConfig, {**settings, "vocabulary": place}, run)
    told = replace(config, vocabulary=lake.root / place)
    return Build(
        root=lake.root,
        artifact=dataset.folder,
        asset=dataset.shards,
        partition=key,
        code_version=kd.CODE_VERSION,
        config=config,
        inputs=[source, vocabulary],
        make=lambda attempt: kd.build_kd_shard(shard, attempt.out, told, attempt.parts),
        laws=lambda folder: synth_laws.kd_laws(folder, key, config.valid_fraction),
        shared=True,
        tokenizer=Tokenizer(name=O200K.name, path=place.as_posix(), sha256=O200K.sha256),
        space=0 if config.capped else _GROWTH * shard.stat().st_size,
    )


def kd_manifest_build(lake: Lake, dataset: Dataset, key: str | None) -> Build:
    """`manifest.json` of a Megatron dataset, from its shards' records and the Harmony manifest's.

    Raises GristmillError where a shard was built from a Harmony shard that was
    replaced since, or the Harmony manifest is older than the shards.
    """
    from gristmill.synth import kd_manifest, recorded_laws
    from gristmill.synth.adoption import MANIFEST

    records = shard_records(lake, dataset.folder, dataset.shards)
    for record in records:
        _check_current(lake, record)
    _check_manifest_current(lake)
    harmony_manifest = lake.root / FOLDER / MANIFEST
    inputs = [lake.published(dataset.folder, dataset.shards, number) for number in NUMBERS]
    # As a file: its hash stands in the manifest, and its times are no payload.
    inputs += rawfiles.raw_inputs(lake.root, [harmony_manifest], HARMONY_MANIFEST, None, known={})

    def make(attempt: Attempt) -> Summary:
        return kd_manifest.write_kd_manifest(
            [record.model_dump(mode="json") for record in records],
            attempt.out,
            root=_named(lake, dataset.folder),
            harmony_manifest=harmony_manifest,
            harmony_dir=_named(lake, FOLDER),
            vocabulary=_named(lake, "tokenizer", O200K.relative),
            created_unix_s=int(time.time()),
            git_sha=environment.git_sha(),
        )

    folder = lake.root / dataset.folder
    return Build(
        root=lake.root,
        artifact=dataset.folder,
        asset=dataset.manifest,
        partition=MANIFEST_RECORD,
        code_version=MANIFEST_VERSION,
        config=_manifest_of(records),
        inputs=inputs,
        make=make,
        laws=lambda out: recorded_laws.kd_manifest_laws(out, MANIFEST_RECORD, shards=folder),
        shared=True,
    )


def _named(lake: Lake, *names: str) -> str:
    """A path as manifests have it: from the data root's own name on, `data/megatron/..`."""
    return "/".join((lake.root.name, *names))


def _record_path(lake: Lake, artifact: str, partition: str) -> Path:
    return provenance.record_path(lake.root / artifact, partition, shared=True)


def shard_records(lake: Lake, artifact: str, asset: str) -> list[Record]:
    """The records of all four shards. GristmillError names the first that is not there."""
    records = []
    for number in NUMBERS:
        lake.published(artifact, asset, number)
        records.append(provenance.read_record(_record_path(lake, artifact, number)))
    return records


def _manifest_of(records: Sequence[Record]) -> ManifestOf:
    return ManifestOf({str(record.partition): record.digest for record in records})


def _inputs_of(lake: Lake, record: Record) -> list[Input]:
    path = _record_path(lake, record.artifact, str(record.partition))
    return provenance.read_inputs(record, path)


def _drop_of(lake: Lake, record: Record) -> Path | None:
    """The drop that a Harmony shard was made from, None where it is gone."""
    first = next((item for item in _inputs_of(lake, record) if item.path), None)
    folder = (lake.root / str(first.path)).parent if first else None
    return folder if folder and folder.is_dir() else None


def _common_source(lake: Lake, records: Sequence[Record]) -> Source:
    """The one drop, and list of files, that all Harmony shards were made from."""
    runs = [[item for item in _inputs_of(lake, record) if item.path] for record in records]
    whole = [lake.root / str(item.path) for run in runs for item in run]
    for record, run in zip(records, runs, strict=True):
        expected = raw.contiguous_run(whole, int(str(record.partition)))
        if [lake.root / str(item.path) for item in run] != expected or whole != sorted(whole):
            raise GristmillError(
                f"the shards of {FOLDER} were made from unequal lists of files, see shard "
                f"{record.partition}: materialize all of {HARMONY} again"
            )
    folders = {path.parent for path in whole}
    if len(folders) > 1:
        names = ", ".join(sorted(f"{folder.parent.name}/{folder.name}" for folder in folders))
        raise GristmillError(
            f"the shards of {FOLDER} were made from several drops ({names}): materialize all of "
            f"{HARMONY} again"
        )
    folder = folders.pop()
    return Source(folder.parent.name, folder)


def _check_as_recorded(path: Path, record: Record) -> None:
    """Raise GristmillError where a published file is not the one that its record speaks of."""
    output = next((item for item in record.outputs if item.path == path.name), None)
    if output is None:
        raise GristmillError(f"{path}: the shard has no rows: nothing can be built from it")
    try:
        stat = path.stat()
    except OSError as error:
        raise GristmillError(f"{path}: {error}: materialize {record.asset} again") from error
    if (stat.st_size, stat.st_mtime_ns) == (output.bytes, output.mtime_ns):
        return
    if stat.st_size != output.bytes or sha256_file(path) != output.sha256:
        raise GristmillError(
            f"{path}: is not what its record says ({stat.st_size:,} bytes, recorded "
            f"{output.bytes:,}): materialize {record.asset} {record.partition} again"
        )


def _check_current(lake: Lake, record: Record) -> None:
    """Raise GristmillError where a shard's inputs were built anew since."""
    for item in _inputs_of(lake, record):
        found = provenance.published_version(lake.root / str(item.path), item.partition)
        if found != item.data_version:
            raise GristmillError(
                f"{record.asset} {record.partition} was built from another {item.asset} "
                f"{item.partition} than the one that stands now: materialize it again"
            )


def _check_manifest_current(lake: Lake) -> None:
    path = _record_path(lake, FOLDER, MANIFEST_RECORD)
    lake.published(FOLDER, HARMONY_MANIFEST, MANIFEST_RECORD)
    config = provenance.config_fields(_manifest_of(shard_records(lake, FOLDER, HARMONY)))
    if provenance.read_record(path).config != config:
        raise GristmillError(
            f"{FOLDER}/manifest.json is older than the shards: materialize {HARMONY_MANIFEST} again"
        )

"""SYNTH: what shards and manifests are built from, how, and where they go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import BadInput, GristmillError, Summary
from gristmill.data_root import DataRoot, NotRebuilt
from gristmill.inbox.account import Account
from gristmill.inbox.division import contiguous_run
from gristmill.provenance import Input, Output, Record, Tokenizer, environment, raw_inputs
from gristmill.publish.build import Attempt, Build, ManifestConfig
from gristmill.settings.tables import Settings
from gristmill.synth.builders import (
    harmony,
    harmony_manifest,
    harmony_shard,
    import_harmony,
    kd_manifest,
    kd_shard,
    manifest_files,
)
from gristmill.synth.builders import source as sources
from gristmill.synth.builders.drop_in_use import (
    FOLDER,
    HARMONY,
    drop_inputs,
    drop_of_shard,
    raw_file_count,
    record_path,
    refuse_samples,
    source_of,
)
from gristmill.synth.builders.source import NUMBERS, Source
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.synth.raw import files as raw
from gristmill.vocabularies.pinned import O200K

HARMONY_MANIFEST: Final = "synth/harmony_manifest"
# Name of the manifest's record, which is in one folder with the records of the shards.
_MANIFEST: Final = "manifest"
# A shard takes about as many bytes as its raw files; the parts take the same once more.
_HARMONY_GROWTH: Final = 2
# A token takes 4 bytes, its two sidecars 1 byte each; the parts take the same once more.
_KD_GROWTH: Final = 9


def harmony_build(wanted: Wanted) -> Build:
    """Returns the build of a Harmony shard: converted from raw files, or from a ready folder."""
    root, number = wanted.root, _number(wanted)
    source = source_of(root)
    refuse_samples(root, source)
    _, account = root.ready_drop(source.inbox, source.folder.name)
    if source.inbox == sources.READY:
        return _imported(wanted, source, account.of(number))
    config = _conversion(wanted, source)
    links = root.link_rule()
    files = raw.complete_files(source.folder, raw_file_count(root, source.folder), links)
    own = contiguous_run(files, int(number), raw.SHARDS)
    inputs = drop_inputs(root, source, own, number)

    def make(attempt: Attempt) -> Summary:
        summary = harmony.to_harmony(
            files,
            attempt.out,
            int(number),
            config,
            attempt.parts,
            progress=attempt.progress,
            links=links,
        )
        if not summary.rows:
            raise _without_rows(number, own, summary.skipped, config.max_rows)
        return summary

    space = _HARMONY_GROWTH * _bytes(inputs) if config.max_rows < 0 else 0
    return wanted.build(
        FOLDER, config, inputs, make, shared=number, account=account.of(number), space=space
    )


def _number(wanted: Wanted) -> str:
    """The number of a shard. Raises ValueError for an unknown one."""
    if wanted.partition not in NUMBERS:
        raise ValueError(f"{wanted.partition!r} is none of {', '.join(NUMBERS)}")
    return wanted.partition


def _bytes(inputs: Sequence[Input]) -> int:
    return sum(item.bytes or 0 for item in inputs)


def _conversion(wanted: Wanted, source: Source) -> HarmonyConfig:
    """The config of a conversion. Raises BadInput for another number of shards."""
    config = wanted.config(HarmonyConfig, wanted.root.settings(HARMONY, source.folder))
    if config.num_shards != len(NUMBERS):
        raise BadInput(
            "configuration",
            f"num_shards = {config.num_shards}: must be {len(NUMBERS)}, one for each partition",
        )
    return replace(config, developer=None) if config.developer == "" else config


def _without_rows(number: str, own: Sequence[Path], read: int, most: int) -> GristmillError:
    """The error for a shard that keeps no row: it has no file, and its dataset needs all shards."""
    names = own[0].name if len(own) == 1 else f"{own[0].name} to {own[-1].name}"
    limit = f"take more rows than max_rows, which is {most}, " if most >= 0 else ""
    return GristmillError(
        f"{own[0].parent}: shard {number} would be empty: of {read:,} rows read from {names} "
        f"none has a {raw.TEXTS[0]}, a {raw.TEXTS[1]} and a {raw.TEXTS[2]}: {limit}add files "
        "that have such rows, or divide the rows into other files, so that each shard gets some"
    )


def _imported(wanted: Wanted, source: Source, account: Account) -> Build:
    root, number = wanted.root, wanted.partition
    if chosen := list(wanted.chosen):
        raise BadInput(
            "configuration",
            f"{chosen[0]}: has no effect, since the shards of {source.name} are imported "
            "unchanged: leave it out",
        )
    inputs = drop_inputs(root, source, [harmony_shard.shards(source.folder)[number]], number)
    return wanted.build(
        FOLDER,
        import_harmony.ImportConfig(source.name),
        inputs,
        lambda attempt: import_harmony.import_shard(
            source.folder, attempt.out, number, progress=attempt.progress, links=root.link_rule()
        ),
        shared=number,
        account=account,
        space=_bytes(inputs),
    )


def harmony_manifest_build(wanted: Wanted) -> Build:
    """Returns the build of the Harmony dataset's `metadata.json` and `manifest.json`."""
    root = wanted.root
    inputs, records = _shards(root, FOLDER, HARMONY)
    source = _common_source(root, records)
    if source.inbox == sources.READY:
        files = [source.folder / manifest_files.MANIFEST, source.folder / manifest_files.METADATA]
        inputs += drop_inputs(root, source, files, _MANIFEST)
    else:
        _check_equal_configs(records, HarmonyConfig)

    def make(attempt: Attempt) -> Summary:
        if source.inbox == sources.READY:
            return import_harmony.import_manifest(
                source.folder, attempt.out, attempt.progress, links=root.link_rule()
            )
        return harmony_manifest.write_harmony_manifest(
            _dumped(records),
            attempt.out,
            HarmonyConfig(**records[0].config),
            dataset_dir=_named(root, FOLDER),
            created_unix_s=int(time.time()),
            git_sha=environment.git_sha(),
            progress=attempt.progress,
        )

    return wanted.build(FOLDER, ManifestConfig.of(records), inputs, make, shared=_MANIFEST)


def _shards(root: DataRoot, artifact: str, asset: str) -> tuple[list[Input], list[Record]]:
    """All shards of an asset as inputs, and their records. Raises NotBuilt for a missing one."""
    inputs = [root.published(artifact, asset, number) for number in NUMBERS]
    paths = [record_path(root, artifact, number) for number in NUMBERS]
    return inputs, [provenance.read_record(path) for path in paths]


def _common_source(root: DataRoot, records: Sequence[Record]) -> Source:
    """The one drop that all Harmony shards were built from, with the same list of files."""
    runs = [
        [root.root / str(item.path) for item in _inputs_of(root, record) if item.path]
        for record in records
    ]
    files = [path for run in runs for path in run]
    for record, run in zip(records, runs, strict=True):
        expected = contiguous_run(files, int(str(record.partition)), raw.SHARDS)
        if run != expected or files != sorted(files):
            raise NotRebuilt(
                f"{FOLDER}: shard {record.partition} was built from another list of files than "
                f"the other shards: materialize all partitions of {HARMONY} again"
            )
    folders = {path.parent for path in files}
    if len(folders) > 1:
        names = ", ".join(sorted(f"{folder.parent.name}/{folder.name}" for folder in folders))
        raise NotRebuilt(
            f"{FOLDER}: the shards were built from several drops ({names}): materialize all "
            f"partitions of {HARMONY} again"
        )
    folder = folders.pop()
    return Source(folder.parent.name, folder)


def _inputs_of(root: DataRoot, record: Record) -> list[Input]:
    path = record_path(root, record.artifact, str(record.partition))
    return provenance.read_inputs(record, path)


def _check_equal_configs(records: Sequence[Record], config: type[Any]) -> None:
    """Raise NotRebuilt if two shards were built with configs that may not differ."""
    try:
        manifest_files.check_equal_configs(_dumped(records), config)
    except GristmillError as error:
        raise NotRebuilt(str(error)) from error


def _dumped(records: Sequence[Record]) -> list[dict[str, Any]]:
    return [record.model_dump(mode="json") for record in records]


def _named(root: DataRoot, *names: str) -> str:
    """A path as manifests contain it, from the data root's name on: `data/megatron/...`."""
    return "/".join((root.root.name, *names))


def kd_build(wanted: Wanted) -> Build:
    """Returns the build of the Megatron datasets of one Harmony shard."""
    root, number = wanted.root, _number(wanted)
    source = root.published(FOLDER, HARMONY, number)
    shard = root.root / FOLDER / harmony_shard.shard_name(number)
    output = _output_of(shard, provenance.read_record(record_path(root, FOLDER, number)))
    place = Path("tokenizer") / O200K.relative
    vocabulary = root.published("tokenizer", f"tokenizers/{O200K.name}", O200K.name)
    # The record has the path below the data root, the builder needs the absolute path.
    config = wanted.config(KDConfig, filled_in={"vocabulary": place})
    resolved = replace(config, vocabulary=root.root / place)
    return wanted.build(
        wanted.asset.place,
        config,
        [source, vocabulary],
        lambda attempt: kd_shard.build_kd_shard(
            shard, attempt.out, resolved, attempt.parts, progress=attempt.progress
        ),
        shared=number,
        tokenizer=Tokenizer(name=O200K.name, path=place.as_posix(), sha256=O200K.sha256),
        space=0 if config.capped else _KD_GROWTH * output.bytes,
    )


def kd_manifest_build(wanted: Wanted) -> Build:
    """Returns the build of a Megatron dataset's `manifest.json`."""
    root, place, (asset,) = wanted.root, wanted.asset.place, wanted.asset.all_of
    inputs, records = _shards(root, place, asset)
    for record in records:
        _check_current(root, record)
    _check_equal_configs(records, KDConfig)
    source = root.root / FOLDER / manifest_files.MANIFEST
    inputs.append(_current_manifest(root))
    if not source.is_file():
        raise GristmillError(
            f"{source}: is gone: run `gristmill materialize {HARMONY_MANIFEST} --rebuild`"
        )
    # Also as a file: the manifest has its sha256, but its data version leaves out times.
    inputs += raw_inputs.raw_inputs(root.root, [source], HARMONY_MANIFEST, None, known={})

    def make(attempt: Attempt) -> Summary:
        return kd_manifest.write_kd_manifest(
            _dumped(records),
            attempt.out,
            root=_named(root, place),
            harmony_manifest=source,
            harmony_dir=_named(root, FOLDER),
            vocabulary=_named(root, "tokenizer", O200K.relative),
            created_unix_s=int(time.time()),
            git_sha=environment.git_sha(),
            progress=attempt.progress,
        )

    return wanted.build(place, ManifestConfig.of(records), inputs, make, shared=_MANIFEST)


def _output_of(path: Path, record: Record) -> Output:
    """The recorded file of a shard. Raises GristmillError if the shard has no rows."""
    output = next((item for item in record.outputs if item.path == path.name), None)
    if output is None:
        raise GristmillError(
            f"{path}: the shard has no rows, so that nothing can be built from it: see the counts "
            f"of {record.asset} {record.partition}"
        )
    return output


def _check_current(root: DataRoot, record: Record) -> None:
    """Raise NotRebuilt if a shard's inputs were rebuilt since."""
    for item in _inputs_of(root, record):
        current = provenance.published_version(root.root / str(item.path), item.partition)
        if current != item.data_version:
            raise NotRebuilt(
                f"{record.asset} {record.partition}: {item.asset} {item.partition} was rebuilt "
                f"since: materialize {record.asset} {record.partition} again"
            )


def _current_manifest(root: DataRoot) -> Input:
    """The Harmony manifest as an input. Raises NotRebuilt if it is older than the shards."""
    manifest = root.published(FOLDER, HARMONY_MANIFEST, _MANIFEST)
    _, records = _shards(root, FOLDER, HARMONY)
    config = provenance.config_fields(ManifestConfig.of(records))
    if provenance.read_record(record_path(root, FOLDER, _MANIFEST)).config != config:
        raise NotRebuilt(
            f"{FOLDER}/manifest.json: older than the shards: materialize {HARMONY_MANIFEST} again"
        )
    return manifest


def is_asked(table: str, root: DataRoot, key: str) -> bool:
    """Whether files have a table for a shard, so that it is built without being named."""
    return bool(settings_of_shard(table, root, key))


def settings_of_shard(table: str, root: DataRoot, key: str) -> Settings:
    """Returns what files give for a shard, by the drop that its Harmony shard was built from."""
    given = root.settings(table, drop_of_shard(root, key))
    # An empty text in a file says that there is no such message.
    none = {"developer": None} if given.get("developer") == "" else {}
    return Settings({**given, **none}, given.file)

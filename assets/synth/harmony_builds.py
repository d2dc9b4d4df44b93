"""The builds of the Harmony shards and of their manifest: inputs, config, builder and laws."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from assets import configs
from assets.synth.drops import drop_inputs, refuse_samples
from assets.synth.records import (
    FOLDER,
    HARMONY,
    HARMONY_MANIFEST,
    MANIFEST_RECORD,
    MANIFEST_VERSION,
    check_equal_configs,
    inputs_of,
    manifest_config,
    manifest_path,
    shard_records,
)
from gristmill import families
from gristmill.contract import BadInput, GristmillError, Summary
from gristmill.families import Subject
from gristmill.provenance import Record, environment
from gristmill.publish.build import Attempt, Build
from gristmill.synth import HarmonyConfig
from gristmill.synth.builders import source as sources
from gristmill.synth.builders.drop_in_use import raw_file_count, source_of
from gristmill.synth.builders.source import NUMBERS, Source
from gristmill.synth.raw import files as raw
from resources import Lake, NotRebuilt

# A shard takes about as many bytes as its raw files; the parts take the same once more.
_GROWTH = 2


def harmony_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a Harmony shard: converted from raw files, or from a ready folder.

    lake: the data root.
    run: the launchpad's config.
    key: number of the shard, as `0`.

    Raises GristmillError if no drop is in use, or if samples would replace what another drop was
    built into, BadInput if the config does not fit the drop.
    """
    from gristmill.synth.builders import harmony

    source, number = source_of(lake), str(key)
    refuse_samples(lake, source)
    _, account = lake.ready_drop(source.inbox, source.folder.name)
    build = partial(
        Build,
        root=lake.root,
        artifact=FOLDER,
        asset=HARMONY,
        partition=key,
        code_version=HarmonyConfig.CODE_VERSION,
        laws=lambda folder: families.check(HARMONY, Subject(folder, key)),
        shared=True,
    )
    if source.inbox == sources.READY:
        return _imported(lake, run, source, number, partial(build, account=account.of(number)))
    config = _config(lake, run, source)
    links = lake.link_rule()
    files = raw.complete_files(source.folder, raw_file_count(lake, source.folder), links)
    own = raw.contiguous_run(files, int(number))
    inputs = drop_inputs(lake, source, own, number)

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

    return build(
        config=config,
        inputs=inputs,
        make=make,
        account=account.of(number),
        space=_GROWTH * sum(item.bytes or 0 for item in inputs) if config.max_rows < 0 else 0,
    )


def _config(lake: Lake, run: BaseModel, source: Source) -> HarmonyConfig:
    """The config of a conversion. Raises BadInput for another number of shards."""
    config = configs.resolve(HarmonyConfig, lake.settings(HARMONY, source.folder), run)
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


def _imported(
    lake: Lake, run: BaseModel, source: Source, number: str, build: "partial[Build]"
) -> Build:
    from gristmill.synth.builders import harmony_shard, import_harmony

    if chosen := list(configs.chosen_values(run)):
        raise BadInput(
            "configuration",
            f"{chosen[0]}: has no effect, since the shards of {source.name} are imported "
            "unchanged: leave it out",
        )
    inputs = drop_inputs(lake, source, [harmony_shard.shards(source.folder)[number]], number)
    return build(
        config=import_harmony.ImportConfig(source.name),
        inputs=inputs,
        make=lambda attempt: import_harmony.import_shard(
            source.folder, attempt.out, number, progress=attempt.progress, links=lake.link_rule()
        ),
        space=sum(item.bytes or 0 for item in inputs),
    )


def harmony_manifest_build(lake: Lake, key: str | None) -> Build:
    """Returns the build of the Harmony dataset's `metadata.json` and `manifest.json`.

    lake: the data root.
    key: not used, since the manifest has no partitions.

    Raises NotBuilt if a shard is not published, NotRebuilt if the shards come from different files
    or configs.
    """
    from gristmill.synth.builders import harmony_manifest, import_harmony, manifest_files

    records = shard_records(lake, FOLDER, HARMONY)
    source = _common_source(lake, records)
    inputs = [lake.published(FOLDER, HARMONY, number) for number in NUMBERS]
    if source.inbox == sources.READY:
        files = [source.folder / manifest_files.MANIFEST, source.folder / manifest_files.METADATA]
        inputs += drop_inputs(lake, source, files, MANIFEST_RECORD)
    else:
        check_equal_configs(records, HarmonyConfig)

    def make(attempt: Attempt) -> Summary:
        if source.inbox == sources.READY:
            return import_harmony.import_manifest(
                source.folder, attempt.out, attempt.progress, links=lake.link_rule()
            )
        return harmony_manifest.write_harmony_manifest(
            [record.model_dump(mode="json") for record in records],
            attempt.out,
            HarmonyConfig(**records[0].config),
            dataset_dir=manifest_path(lake, FOLDER),
            created_unix_s=int(time.time()),
            git_sha=environment.git_sha(),
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=FOLDER,
        asset=HARMONY_MANIFEST,
        partition=MANIFEST_RECORD,
        code_version=MANIFEST_VERSION,
        config=manifest_config(records),
        inputs=inputs,
        make=make,
        laws=lambda folder: families.check(HARMONY_MANIFEST, Subject(folder, MANIFEST_RECORD)),
        shared=True,
    )


def _common_source(lake: Lake, records: Sequence[Record]) -> Source:
    """The one drop that all Harmony shards were built from, with the same list of files."""
    runs = [[item for item in inputs_of(lake, record) if item.path] for record in records]
    files = [lake.root / str(item.path) for run in runs for item in run]
    for record, run in zip(records, runs, strict=True):
        expected = raw.contiguous_run(files, int(str(record.partition)))
        if [lake.root / str(item.path) for item in run] != expected or files != sorted(files):
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

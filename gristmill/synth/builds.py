"""SYNTH: what shards and manifests are built from, how, and where they go.

The shards of Harmony share one drop, of which each takes its part.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import BadInput, GristmillError, Summary
from gristmill.data_root import DataRoot, NotRebuilt
from gristmill.inbox.division import contiguous_run
from gristmill.inbox.listing import Account
from gristmill.provenance import Input, Output, Record, environment, raw_inputs
from gristmill.provenance import Tokenizer as NamedTokenizer
from gristmill.publish.build import Attempt, Build, ManifestConfig
from gristmill.settings.tables import Settings
from gristmill.synth import raw
from gristmill.synth.builders import harmony, harmony_shard, kd_shard, manifests
from gristmill.synth.builders.chat import build_chat_shard
from gristmill.synth.builders.drop_in_use import (
    FOLDER,
    HARMONY,
    Source,
    drop_inputs,
    drop_of_shard,
    raw_file_count,
    record_path,
    refuse_samples,
    source_of,
)
from gristmill.synth.config import (
    ChatDistillConfig,
    ChatKDConfig,
    DistillConfig,
    HarmonyConfig,
    KDConfig,
)
from gristmill.synth.raw import NUMBERS, READY, Render
from gristmill.vocabularies.pinned import O200K, PLACE, PLACED, VOCABULARIES
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer

HARMONY_MANIFEST: Final = "synth/harmony_manifest"
# Name of the manifest's record, which is in one folder with the records of the shards.
_MANIFEST: Final = "manifest"
# A shard takes about as many bytes as its raw files; the parts take the same once more.
_HARMONY_GROWTH: Final = 2
# A token takes 4 bytes, its two sidecars 1 byte each; the parts take the same once more.
_KD_GROWTH: Final = 9
_CHAT_GROWTH: Final = 8
# A token takes 9 bytes in a row, and its row in a part half of that.
_DISTILL_GROWTH: Final = 14
DATASET: Final = "pleias_synth"
_CONVERSATIONS, _INBOX = "chat/conversations", "chat"


def harmony_build(wanted: Wanted) -> Build:
    """Returns the build of a Harmony shard: converted from raw files, or from a ready folder."""
    root, number = wanted.root, _number(wanted)
    source = source_of(root)
    refuse_samples(root, source)
    _, account = root.ready_drop(source.inbox, source.folder.name)
    if source.inbox == READY:
        return _imported(wanted, source, account.of(number))
    config = wanted.config(HarmonyConfig, wanted.root.settings(HARMONY, source.folder))
    if config.num_shards != len(NUMBERS):
        raise BadInput(
            "configuration",
            f"num_shards = {config.num_shards}: must be {len(NUMBERS)}, one for each partition",
        )
    config = replace(config, developer=None) if config.developer == "" else config
    files = raw.complete_files(source.folder, raw_file_count(root, source.folder), root.link_rule())
    own = contiguous_run(files, int(number), raw.SHARDS)
    inputs, left = drop_inputs(root, source, own, number)

    def make(attempt: Attempt) -> Summary:
        summary = harmony.to_harmony(
            files,
            attempt.out,
            int(number),
            config,
            attempt.parts,
            progress=attempt.progress,
            links=left.links(),
        )
        if not summary.rows:
            raise _without_rows(number, own, summary.skipped, config.max_rows)
        return summary

    space = _HARMONY_GROWTH * _bytes(inputs) if config.max_rows < 0 else 0
    return wanted.build(
        *(FOLDER, config, inputs, make),
        shared=number,
        account=account.of(number),
        space=space,
        left=left,
    )


def _number(wanted: Wanted) -> str:
    """The number of a shard. Raises ValueError for an unknown one."""
    if wanted.partition not in NUMBERS:
        raise ValueError(f"{wanted.partition!r} is none of {', '.join(NUMBERS)}")
    return wanted.partition


def _bytes(items: Sequence[Input | Output]) -> int:
    return sum(item.bytes or 0 for item in items)


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
    shard = harmony_shard.shards(source.folder)[number]
    inputs, left = drop_inputs(root, source, [shard], number)
    return wanted.build(
        FOLDER,
        manifests.ImportConfig(source.name),
        inputs,
        lambda attempt: manifests.import_shard(
            source.folder, attempt.out, number, progress=attempt.progress, links=left.links()
        ),
        left=left,
        shared=number,
        account=account,
        space=_bytes(inputs),
    )


def harmony_manifest_build(wanted: Wanted) -> Build:
    """Returns the build of the Harmony dataset's `metadata.json` and `manifest.json`."""
    root = wanted.root
    inputs, records = _shards(root, FOLDER, HARMONY)
    source = _common_source(root, records)
    if source.inbox == READY:
        files = [source.folder / manifests.MANIFEST, source.folder / manifests.METADATA]
        inputs += drop_inputs(root, source, files, _MANIFEST)[0]
    else:
        _check_equal_configs(records, HarmonyConfig)

    def make(attempt: Attempt) -> Summary:
        if source.inbox == READY:
            return manifests.import_manifest(
                source.folder, attempt.out, attempt.progress, links=root.link_rule()
            )
        return manifests.write_harmony_manifest(
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
        [root.root / str(item.path) for item in _inputs_of(root, record) if item.is_of_drop]
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
        manifests.check_equal_configs(_dumped(records), config)
    except GristmillError as error:
        raise NotRebuilt(str(error)) from error


def _dumped(records: Sequence[Record]) -> list[dict[str, Any]]:
    return [record.model_dump(mode="json") for record in records]


def _named(root: DataRoot, *names: str) -> str:
    """A path as manifests contain it, from the data root's name on: `data/megatron/...`."""
    return "/".join((root.root.name, *names))


class _Talks(NamedTuple):
    shard: Path
    inputs: list[Input]
    tokenizer: Tokenizer
    place: Path
    bytes: int
    is_own: bool
    render: Render | None

    def build(
        self, wanted: Wanted, config: KDConfig, make: _Make, growth: int, is_shared: bool = False
    ) -> Build:
        """Returns the build of an artifact. make: gets the config with the file of the ids."""
        place, own = wanted.asset.place, self.tokenizer
        return wanted.build(
            place if is_shared else wanted.root.artifact(*place.split("/"), wanted.partition),
            config,
            self.inputs,
            partial(make, replace(config, vocabulary=own.path)),
            shared=wanted.partition if is_shared else "",
            tokenizer=NamedTokenizer(name=own.name, path=self.place.as_posix(), sha256=own.sha256),
            space=0 if config.capped else growth * self.bytes,
        )


_Make = Callable[[Any, Attempt], Summary]


def _harmony_talks(wanted: Wanted) -> _Talks:
    """A Harmony shard."""
    root, number = wanted.root, _number(wanted)
    shard = root.published(FOLDER, HARMONY, number)
    vocabulary = root.published("tokenizer", f"tokenizers/{O200K.name}", O200K.name)
    record = provenance.read_record(record_path(root, FOLDER, number))
    place = Path("tokenizer") / O200K.relative
    return _Talks(
        root.root / FOLDER / harmony_shard.shard_name(number),
        [shard, vocabulary],
        of_pinned(O200K, root.root / place),
        place,
        _bytes(record.outputs),
        manifests.ImportConfig.__dataclass_fields__.keys() != record.config.keys(),
        None,
    )


def _own_talks(wanted: Wanted) -> _Talks:
    """A shard of conversations of one's own, by the recipe of their drop."""
    root, key = wanted.root, wanted.partition
    name, _, number = key.rpartition("__")
    folder = root.artifact(*_CONVERSATIONS.split("/"), key)
    source = root.published(folder, _CONVERSATIONS, key)
    drop, _ = root.ready_drop(_INBOX, name)
    render = raw.read_render(drop, root.link_rule())
    tokenizer = open_tokenizer(root.root / PLACE / render.tokenizer)
    is_pinned = any(render.tokenizer == each.name for each in VOCABULARIES)
    asset = f"tokenizers/{render.tokenizer}" if is_pinned else PLACED
    vocabulary = root.published(PLACE, asset, render.tokenizer)
    artifact = root.artifact(*wanted.asset.place.split("/"), key)
    files = [] if render.path is None else [render.path]
    record = provenance.read_record(provenance.record_path(root.root / folder, None, shared=False))
    return _Talks(
        root.root / folder / f"shard_{number}.parquet",
        [source, vocabulary, *root.raw_inputs(artifact, files, "chat/raw", key)],
        tokenizer,
        tokenizer.path.relative_to(root.root),
        _bytes(record.outputs),
        True,
        render,
    )


def render_change(file: Path, root: Path, config: Mapping[str, Any], _: Sequence[str]) -> str:
    """What `[render]` of a recipe says other than the config of a record; empty where nothing."""
    new = json.loads(raw.read_render(file.parent, DataRoot(root).link_rule()).recorded)
    old = json.loads(config.get("render") or "{}")
    # The name of a template comes before the sha256 of its text.
    other = (key for key in sorted(old, reverse=True) if old[key] != new.get(key))
    return next((f"render: {key} is {new.get(key)} now, was {old[key]}" for key in other), "")


def kd_build(wanted: Wanted) -> Build:
    """Returns the build of the Megatron datasets of one Harmony shard."""
    talks = _harmony_talks(wanted)

    def make(config: KDConfig, attempt: Attempt) -> Summary:
        given = talks.shard, attempt.out, config, attempt.parts
        return kd_shard.build_kd_shard(*given, is_own=talks.is_own, progress=attempt.progress)

    # The record has the path below the data root, the builder needs the absolute path.
    config = wanted.config(KDConfig, filled_in={"vocabulary": talks.place})
    return talks.build(wanted, config, make, _KD_GROWTH, is_shared=True)


def chat_build(wanted: Wanted) -> Build:
    """Returns the build of the Megatron datasets of one shard of conversations."""
    talks = _own_talks(wanted)
    render, tokenizer = talks.render or Render(), talks.tokenizer
    given = wanted.config(KDConfig, filled_in={"vocabulary": talks.place, "valid_fraction": 0.0})

    def make(config: KDConfig, attempt: Attempt) -> Summary:
        given = talks.shard, attempt.out, config, render, tokenizer, attempt.parts
        return build_chat_shard(*given, is_own=True, progress=attempt.progress)

    config = ChatKDConfig(
        **vars(given), render=render.recorded, eod=tokenizer.eod, ids=tokenizer.size
    )
    return talks.build(wanted, config, make, _CHAT_GROWTH)


def distill_build(wanted: Wanted) -> Build:
    """Returns the build of the dataset of one Harmony shard."""
    talks = _harmony_talks(wanted)
    config = wanted.config(DistillConfig, filled_in={"vocabulary": talks.place})
    return _distilled(wanted, talks, config, DATASET)


def chat_distill_build(wanted: Wanted) -> Build:
    """Returns the build of the dataset of one shard of conversations."""
    talks = _own_talks(wanted)
    given = wanted.config(DistillConfig, filled_in={"vocabulary": talks.place})
    config = ChatDistillConfig(**vars(given), render=(talks.render or Render()).recorded)
    return _distilled(wanted, talks, config, wanted.partition.rpartition("__")[0])


def _distilled(wanted: Wanted, talks: _Talks, config: DistillConfig, dataset: str) -> Build:
    def make(config: DistillConfig, attempt: Attempt) -> Summary:
        from gristmill.synth.builders.distill_shard import build_distill  # loads Arrow

        return build_distill(
            talks.shard,
            attempt.out,
            config,
            talks.tokenizer,
            attempt.parts,
            dataset=dataset,
            render=talks.render,
            is_own=talks.is_own,
            progress=attempt.progress,
        )

    return talks.build(wanted, config, make, _DISTILL_GROWTH)


def kd_manifest_build(wanted: Wanted) -> Build:
    """Returns the build of a Megatron dataset's `manifest.json`."""
    root, place, (asset,) = wanted.root, wanted.asset.place, wanted.asset.all_of
    inputs, records = _shards(root, place, asset)
    for record in records:
        for item in _inputs_of(root, record):
            current = provenance.published_version(root.root / str(item.path), item.partition)
            if current != item.data_version:
                raise NotRebuilt(
                    f"{record.asset} {record.partition}: {item.asset} {item.partition} was rebuilt "
                    f"since: materialize {record.asset} {record.partition} again"
                )
    _check_equal_configs(records, KDConfig)
    source = root.root / FOLDER / manifests.MANIFEST
    inputs.append(_current_manifest(root))
    if not source.is_file():
        raise GristmillError(
            f"{source}: is gone: run `gristmill materialize {HARMONY_MANIFEST} --rebuild`"
        )
    # Also as a file: the manifest has its sha256, but its data version leaves out times.
    inputs += raw_inputs.raw_inputs(root.root, [source], HARMONY_MANIFEST, None, known={})

    def make(attempt: Attempt) -> Summary:
        return manifests.write_kd_manifest(
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
    """Whether files have a table for a partition, so that it is built without being named."""
    return bool(settings_of_shard(table, root, key))


def settings_of_shard(table: str, root: DataRoot, key: str) -> Settings:
    """Returns what files give for a partition: the file of its drop, else the data root's."""
    if table.startswith("chat/"):
        drop = root.inbox(_INBOX) / key.rpartition("__")[0]
        return root.settings(table, drop if drop.is_dir() else None)
    given = root.settings(table, drop_of_shard(root, key))
    # An empty text in a file says that there is no such message.
    none = {"developer": None} if given.get("developer") == "" else {}
    return Settings({**given, **none}, given.file)

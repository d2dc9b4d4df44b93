"""2048: what a pack, values, a pool and a view are built from, how, and where they go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gristmill import keys, provenance
from gristmill.asset import Wanted
from gristmill.contract import BadInput, FileNote, GristmillError, Summary, Violation
from gristmill.data_root import DataRoot
from gristmill.macroxue.builders import pack, pool, training_view
from gristmill.macroxue.builders import values as value_builder
from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig, ViewConfig
from gristmill.macroxue.raw import VIEW_TABLE
from gristmill.macroxue.raw.annotations import annotation_files
from gristmill.macroxue.raw.described import (
    ANNOTATIONS_INBOX,
    PoolFile,
    ViewFile,
    member,
    read_pool_file,
    read_view_file,
    refuse_merged_away,
    source_of,
    values_of,
)
from gristmill.macroxue.raw.drops import raw_files
from gristmill.macroxue.raw.read_steps import none_fits
from gristmill.publish import stamps
from gristmill.publish.build import Attempt, Build, InputChanged, bytes_of
from gristmill.settings.tables import Settings
from gristmill.takedowns.left_out import left_out

RAW_DROP, PACK, VALUES, POOL, ANNOTATIONS = (
    f"macroxue/{name}" for name in ("raw_drop", "pack", "values", "pool", "annotations")
)


def pack_build(wanted: Wanted) -> Build:
    """Returns the build of a drop's pack."""
    root, key = wanted.root, wanted.partition
    refuse_merged_away(root, key)
    drop, account = root.ready_drop("macroxue", keys.checked(key))
    links = root.link_rule()
    config = wanted.config(PackConfig)
    artifact = root.artifact("macroxue", "packs", key)
    inputs = root.raw_inputs(artifact, files := raw_files(drop, links), RAW_DROP, key)
    left = left_out(root, [drop], files, RAW_DROP, key)

    def make(attempt: Attempt) -> Summary:
        try:
            summary = pack.pack(
                drop,
                attempt.out,
                config,
                attempt.parts,
                session={"fingerprint": attempt.recipe},
                progress=attempt.progress,
                links=left.links(),
            )
        except BadInput as error:
            rule = error.rule + none_fits(drop, links)
            raise BadInput(error.file, rule, error.row) from error
        # The publisher compares only the files that were listed, but the pack may contain a
        # game that arrived after the listing.
        present = [file.relative_to(root.root).as_posix() for file in raw_files(drop, links)]
        if present != [item.path for item in inputs]:
            rule = "games were added or removed while it was read: materialize the pack again once"
            raise InputChanged(f"{drop}: {rule} the drop is complete")
        return summary

    # Laws of games that are left out look for no notes: the check of the pack does.
    noted: list[Violation] | None = [] if config.game_laws != "warn" else None
    # Rows take about 1.5 times the compressed bytes, and the parts take the same once more.
    space = 4 * sum(item.bytes or 0 for item in inputs)
    given = artifact, config, inputs, make
    build = wanted.build(*given, noted=noted, space=space, account=account, left=left)

    def laws(out: Path) -> Iterator[Violation]:
        for at, each in enumerate(build.laws(out)):
            yield each if at else replace(each, found=each.found + none_fits(drop, links))

    return replace(build, laws=laws)


def values_build(wanted: Wanted) -> Build:
    """Returns the build of the values of a drop's pack."""
    root, key = wanted.root, wanted.partition
    refuse_merged_away(root, key)
    source = root.published(root.artifact("macroxue", "packs", key), PACK, key)
    folder = root.root / str(source.path)
    config = wanted.config(ValueConfig)

    def make(attempt: Attempt) -> Summary:
        return value_builder.value_sidecar(folder, attempt.out, config, progress=attempt.progress)

    artifact = root.artifact("macroxue", "values", key)
    return wanted.build(artifact, config, [source], make, space=bytes_of(folder) // 2)


def pool_build(wanted: Wanted) -> Build:
    """Returns the build of a pool."""
    root, file = wanted.root, _file_of(wanted.root, "pools", wanted.partition)
    root.ready_drop("pools", file.name)
    described = read_pool_file(file, root.link_rule())
    artifact = root.artifact("macroxue", "pools", wanted.partition)
    inputs = [member(root, artifact, name) for name in described.members]
    config = wanted.config(MergeConfig, filled_in={"names": described.members})
    folders = [root.root / str(item.path) for item in inputs]

    def make(attempt: Attempt) -> Summary:
        if gone := [folder.name for folder in folders if not folder.exists()]:
            raise GristmillError(
                f"{', '.join(gone)}: this pool deleted these packs after it was published: set "
                f"delete_members = false in drops/pools/{file.name}, materialize {PACK} for them, "
                "and build the pool again"
            )
        session = {"fingerprint": attempt.recipe}
        return pool.merge(folders, attempt.out, config, session=session, progress=attempt.progress)

    return wanted.build(
        artifact,
        config,
        inputs,
        make,
        space=bytes_of(*folders),
        deletes=[str(item.path) for item in inputs] if described.delete_members else [],
    )


def view_build(wanted: Wanted) -> Build:
    """Returns the build of a training view."""
    root, file = wanted.root, _file_of(wanted.root, "views", wanted.partition)
    root.ready_drop("views", file.name)
    links = root.link_rule()
    view = read_view_file(file, links)
    config = wanted.config(ViewConfig)
    artifact = root.artifact("macroxue", "views", wanted.partition)
    source = source_of(root, view)
    values = values_of(root, view, source)
    folder, *sidecars = (root.root / str(item.path) for item in (source, *values))
    drop, annotated = None, []
    if view.annotations:
        drop, _ = root.ready_drop(ANNOTATIONS_INBOX, view.annotations)
        files = annotation_files(drop, links)
        annotated = root.raw_inputs(artifact, files, ANNOTATIONS, view.annotations)

    def make(attempt: Attempt) -> Summary:
        # A link changes the inode times of its source, but not what is in it.
        linked = [folder, *sidecars]
        records = [provenance.read_record(each / provenance.RECORD) for each in linked]
        before = [stamps.unchanged(*of) for of in zip(linked, ([r] for r in records), strict=True)]
        summary = training_view.training_view(
            folder,
            sidecars,
            attempt.out,
            config,
            annotations=drop,
            links=links,
            known={
                str(each / of.path): FileNote(of.rows, sha256=of.sha256, bytes=of.bytes)
                for each, record in zip(linked, records, strict=True)
                for of in record.outputs
            },
            progress=attempt.progress,
        )
        for each, noted in zip(linked, before, strict=True):
            stamps.keep(each, noted, ())
        return summary

    space = config.images * bytes_of(folder, *sidecars, *([drop] if drop else []))
    return wanted.build(artifact, config, [source, *values, *annotated], make, space=space)


def pack_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for a pack; a drop that is gone has no file."""
    drop = root.inbox("macroxue") / key
    return root.settings(PACK, drop if drop.is_dir() else None)


def pool_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for a pool: the pool's file, key by key, before the data root's."""
    return _settings(root, POOL, _file_of(root, "pools", key), read_pool_file)


def view_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for a view: the view's file, key by key, before the data root's."""
    return _settings(root, VIEW_TABLE.name, _file_of(root, "views", key), read_view_file)


def _settings(
    root: DataRoot, table: str, file: Path, read: Callable[..., PoolFile | ViewFile]
) -> Settings:
    stated = read(file, root.link_rule()).settings
    return Settings({**root.settings(table), **stated}, file=file)


def _file_of(root: DataRoot, inbox: str, key: str) -> Path:
    """The file of a partition. Raises BadKey for a text that could lead out of the inbox."""
    return root.inbox(inbox) / f"{keys.checked(key)}.toml"

"""2048: what a pack, values and a pool are built from, how, and where they go."""

from __future__ import annotations

from pathlib import Path

from gristmill import keys
from gristmill.asset import Wanted
from gristmill.contract import GristmillError, Summary, Violation
from gristmill.data_root import DataRoot
from gristmill.macroxue.builders import pack, pool
from gristmill.macroxue.builders import values as value_builder
from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig
from gristmill.macroxue.raw.drops import raw_files
from gristmill.macroxue.raw.pool_file import read_pool_file
from gristmill.macroxue.raw.pool_members import member, refuse_merged_away
from gristmill.publish.build import Attempt, Build, InputChanged
from gristmill.settings.tables import Settings

RAW_DROP, PACK, VALUES, POOL = (
    f"macroxue/{name}" for name in ("raw_drop", "pack", "values", "pool")
)


def pack_build(wanted: Wanted) -> Build:
    """Returns the build of a drop's pack.

    Raises NothingToBuild if the drop is gone or not complete, or if a pool deleted its pack;
    GristmillError if the drop is refused.
    """
    root, key = wanted.root, wanted.partition
    refuse_merged_away(root, key)
    drop, account = root.ready_drop("macroxue", keys.checked(key))
    links = root.link_rule()
    config = wanted.config(PackConfig)
    artifact = root.artifact("macroxue", "packs", key)
    inputs = root.raw_inputs(artifact, raw_files(drop, links), RAW_DROP, key)

    def make(attempt: Attempt) -> Summary:
        summary = pack.pack(
            drop,
            attempt.out,
            config,
            parts=attempt.parts,
            session={"fingerprint": attempt.recipe},
            progress=attempt.progress,
            links=links,
        )
        # The publisher compares only the files that were listed, but the pack may contain a
        # game that arrived after the listing.
        present = [file.relative_to(root.root).as_posix() for file in raw_files(drop, links)]
        if present != [item.path for item in inputs]:
            raise InputChanged(
                f"{drop}: games were added or removed while it was read: materialize the pack "
                "again once the drop is complete"
            )
        return summary

    # Laws of games that are left out look for no notes: the check of the pack does.
    noted: list[Violation] | None = [] if config.game_laws != "warn" else None
    # Rows take about 1.5 times the compressed bytes, and the parts take the same once more.
    space = 4 * sum(item.bytes or 0 for item in inputs)
    return wanted.build(artifact, config, inputs, make, noted=noted, space=space, account=account)


def values_build(wanted: Wanted) -> Build:
    """Returns the build of the values of a drop's pack.

    Raises GristmillError if the pack is not published, NothingToBuild if a pool deleted it.
    """
    root, key = wanted.root, wanted.partition
    refuse_merged_away(root, key)
    source = root.published(root.artifact("macroxue", "packs", key), PACK, key)
    folder = root.root / str(source.path)
    config = wanted.config(ValueConfig)

    def make(attempt: Attempt) -> Summary:
        return value_builder.value_sidecar(folder, attempt.out, config, progress=attempt.progress)

    artifact = root.artifact("macroxue", "values", key)
    return wanted.build(artifact, config, [source], make, space=_bytes_of(folder) // 2)


def pool_build(wanted: Wanted) -> Build:
    """Returns the build of a pool.

    Raises GristmillError if the pool's file is wrong or the text is no key, NothingToBuild if the
    file is gone or a member is not published.
    """
    root, file = wanted.root, _pool_file(wanted.root, wanted.partition)
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
        space=sum(_bytes_of(folder) for folder in folders if folder.exists()),
        deletes=[str(item.path) for item in inputs] if described.delete_members else [],
    )


def pack_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for a pack; a drop that is gone has no file."""
    drop = root.inbox("macroxue") / key
    return root.settings(PACK, drop if drop.is_dir() else None)


def pool_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for a pool: the pool's file, key by key, before the data root's."""
    file = _pool_file(root, key)
    described = read_pool_file(file, root.link_rule())
    return Settings({**root.settings(POOL), **described.settings}, file=file)


def _pool_file(root: DataRoot, key: str) -> Path:
    """The file of a pool. Raises BadKey for a text that could name a file outside of the inbox."""
    return root.inbox("pools") / f"{keys.checked(key)}.toml"


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())

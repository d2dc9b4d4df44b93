"""The builds of packs, values and pools: inputs, config, builder, laws and place of each.

See also `assets.py` for the assets that publish them.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from assets import configs
from assets.macroxue.choices import PACK, POOL, VALUES, pack_settings, pool_file, pool_settings
from assets.macroxue.pool_members import refuse_merged_away
from gristmill import families, keys, provenance
from gristmill.contract import GristmillError, Summary, Violation
from gristmill.families import Subject
from gristmill.macroxue.builders import pack, pool
from gristmill.macroxue.builders import values as value_builder
from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig
from gristmill.macroxue.raw.drops import raw_files
from gristmill.macroxue.raw.pool_file import read_pool_file
from gristmill.macroxue.raw.pool_members import member
from gristmill.publish.build import Attempt, Build, InputChanged
from resources import Lake

RAW_DROP = "macroxue/raw_drop"


def pack_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a drop's pack.

    lake: the data root.
    run: the launchpad's config.
    key: key of the drop.

    Raises NothingToBuild if the drop is gone or not complete, or if a pool deleted its pack;
    GristmillError if the drop is refused.
    """
    refuse_merged_away(lake, str(key))
    drop, account = lake.ready_drop("macroxue", keys.checked(str(key)))
    links = lake.link_rule()
    config = configs.resolve(PackConfig, pack_settings(lake, str(key)), run)
    artifact = lake.artifact("macroxue", "packs", str(key))
    inputs = lake.raw_inputs(artifact, raw_files(drop, links), RAW_DROP, str(key))

    def make(attempt: Attempt) -> Summary:
        session = {"fingerprint": attempt.recipe}
        summary = pack.pack(
            drop,
            attempt.out,
            config,
            parts=attempt.parts,
            session=session,
            progress=attempt.progress,
            links=links,
        )
        # The publisher compares only the files that were listed, but the pack may contain a
        # game that arrived after the listing.
        present = [file.relative_to(lake.root).as_posix() for file in raw_files(drop, links)]
        if present != [item.path for item in inputs]:
            raise InputChanged(
                f"{drop}: games were added or removed while it was read: materialize the pack "
                "again once the drop is complete"
            )
        return summary

    fields = provenance.config_fields(config)
    # Laws of games that are left out look for no notes: the check of the pack does.
    noted: list[Violation] | None = [] if config.game_laws != "warn" else None
    return Build(
        root=lake.root,
        artifact=artifact,
        asset=PACK,
        partition=key,
        code_version=PackConfig.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=lambda folder: families.check(PACK, Subject(folder, config=fields, noted=noted)),
        noted=noted,
        # Rows take about 1.5 times the compressed bytes, and the parts take the same once more.
        space=4 * sum(item.bytes or 0 for item in inputs),
        account=account,
    )


def values_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of the values of a drop's pack.

    lake: the data root.
    run: the launchpad's config.
    key: key of the drop.

    Raises GristmillError if the pack is not published, NothingToBuild if a pool deleted it.
    """
    refuse_merged_away(lake, str(key))
    source = lake.published(lake.artifact("macroxue", "packs", str(key)), PACK, key)
    folder = lake.root / str(source.path)
    config = configs.resolve(ValueConfig, lake.settings(VALUES), run)
    return Build(
        root=lake.root,
        artifact=lake.artifact("macroxue", "values", str(key)),
        asset=VALUES,
        partition=key,
        code_version=ValueConfig.CODE_VERSION,
        config=config,
        inputs=[source],
        make=lambda attempt: value_builder.value_sidecar(
            folder, attempt.out, config, progress=attempt.progress
        ),
        laws=lambda out: families.check(VALUES, Subject(out, inputs=[folder])),
        space=_bytes_of(folder) // 2,
    )


def pool_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a pool.

    lake: the data root.
    run: the launchpad's config.
    key: key of the pool, as `<key>.toml` in the inbox.

    Raises GristmillError if the pool's file is wrong or the text is no key, NothingToBuild if the
    file is gone or a member is not published.
    """
    file = pool_file(lake, str(key))
    lake.ready_drop("pools", file.name)
    described = read_pool_file(file, lake.link_rule())
    artifact = lake.artifact("macroxue", "pools", str(key))
    inputs = [member(lake, artifact, name) for name in described.members]
    config = configs.resolve(
        MergeConfig,
        pool_settings(lake, described, str(key)),
        run,
        filled_in={"names": described.members},
    )
    folders = [lake.root / str(item.path) for item in inputs]

    def make(attempt: Attempt) -> Summary:
        if gone := [folder.name for folder in folders if not folder.exists()]:
            raise GristmillError(
                f"{', '.join(gone)}: this pool deleted these packs after it was published: set "
                f"delete_members = false in drops/pools/{key}.toml, materialize {PACK} for them, "
                "and build the pool again"
            )
        session = {"fingerprint": attempt.recipe}
        return pool.merge(folders, attempt.out, config, session=session, progress=attempt.progress)

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=POOL,
        partition=key,
        code_version=MergeConfig.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=lambda folder: families.check(
            POOL, Subject(folder, config=provenance.config_fields(config))
        ),
        space=sum(_bytes_of(folder) for folder in folders if folder.exists()),
        deletes=[str(item.path) for item in inputs] if described.delete_members else [],
    )


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())

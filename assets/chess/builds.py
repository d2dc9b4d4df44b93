"""The builds of a chess month's artifacts: inputs, config, builder, laws and place of each.

See also `assets.py` for the assets that publish them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from assets.chess.drops import RAW_DROP, drop_of
from assets.chess.month import (
    CACHE,
    ELITE,
    GAMES,
    SPLICES,
    VALID,
    choices,
    choices_of_dataset,
    elite_folder,
    games_folder,
    valid_folder,
)
from gristmill import families, provenance
from gristmill.chess.builders import game_dataset as dataset_builder
from gristmill.chess.builders import splice_cache as cache_builder
from gristmill.chess.builders import splice_dataset as splice_builder
from gristmill.chess.builders import validate
from gristmill.chess.config import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
)
from gristmill.chess.format.names import CACHE_FOLDER, pgn_name
from gristmill.chess.raw import archive
from gristmill.chess.raw.archive_config import ArchiveConfig, Limits
from gristmill.chess.raw.months import check_month
from gristmill.contract import GristmillError, NothingToBuild, Summary
from gristmill.families import Subject
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build
from resources import EliteArchive, Lake


def elite_build(lake: Lake, server: EliteArchive, key: str | None) -> Build:
    """Returns the build of a month's PGN: from its drop, else from the archive.

    lake: the data root.
    server: the archive to download from if there is no drop.
    key: month, as `2024-01`.

    Raises BadInput if two drops have the month, NothingToBuild if its drop is not complete,
    GristmillError if the drop is refused. The builder raises GristmillError if the PGN
    came from a drop that is gone, and NothingToBuild if the archive has not published the month.
    """
    month = check_month(str(key))
    artifact = elite_folder(lake, month)
    drop = drop_of(lake, month)
    config: ArchiveConfig | Limits = Limits()
    account = None
    if drop is not None:
        _, account = lake.ready_drop("chess", drop.name)
        inputs = lake.raw_inputs(artifact, [drop], RAW_DROP, month)
    else:
        # A PGN that came from a drop stays current after someone moved the drop away.
        inputs = _inputs_of(lake.root / artifact)
        config = config if inputs else server.config()

    def make(attempt: Attempt) -> Summary:
        if isinstance(config, ArchiveConfig):
            return archive.fetch_month(
                month, attempt.out, config, parts=attempt.parts, progress=attempt.progress
            )
        if drop is None:
            raise GristmillError(
                f"{inputs[0].path}: the drop is gone: bring it back, or move {artifact} away, and "
                "the month is downloaded"
            )
        return archive.take_drop(
            drop,
            attempt.out,
            month,
            ArchiveConfig(limits=config),
            links=lake.link_rule(),
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=ELITE,
        partition=month,
        code_version=ArchiveConfig.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=lambda out: families.check(ELITE, Subject(out)),
        account=account,
    )


def valid_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a month's valid games.

    lake: the data root.
    run: the config of the run, from the resource `chess_month`.
    key: month, as `2024-01`.

    Raises GristmillError if the month's PGN is not published.
    """
    month = check_month(str(key))
    source = lake.published(elite_folder(lake, month), ELITE, month)
    pgn = lake.root / str(source.path) / pgn_name(month)
    config = choices(lake, run).validate()
    # The name and not the path: ids of compat="reference" contain it.
    config = replace(config, source_names=config.source_names or (pgn.name,))

    def make(attempt: Attempt) -> Summary:
        return validate.validate(
            [pgn], attempt.out, config, parts=attempt.parts, progress=attempt.progress
        )

    return Build(
        root=lake.root,
        artifact=valid_folder(lake, month),
        asset=VALID,
        partition=month,
        code_version=ValidateConfig.CODE_VERSION,
        config=config,
        inputs=[source],
        make=make,
        laws=lambda out: families.check(
            VALID, Subject(out, inputs=[pgn.parent], config={"compat": config.compat})
        ),
        # Rows contain the moves twice, and the parts take the same once more.
        space=6 * pgn.stat().st_size if pgn.is_file() else 0,
    )


def dataset_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a month's game dataset.

    lake: the data root.
    run: the config of the run, from the resource `chess_month`.
    key: month, as `2024-01`.

    Raises GristmillError if the month's valid games are not published.
    """
    month = check_month(str(key))
    source = lake.published(valid_folder(lake, month), VALID, month)
    folder = lake.root / str(source.path)
    config = choices(lake, run).game()

    def make(attempt: Attempt) -> Summary:
        return dataset_builder.build_game_dataset(
            folder,
            attempt.out,
            config,
            parts=attempt.parts,
            published=attempt.published,
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=games_folder(lake, month),
        asset=GAMES,
        partition=month,
        code_version=GameConfig.CODE_VERSION,
        config=config,
        inputs=[source],
        make=make,
        laws=lambda out: families.check(GAMES, Subject(out)),
        space=2 * _bytes_of(folder),
    )


def cache_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of the splice cache, which is a folder in the month's game dataset.

    lake: the data root.
    run: the config of the run, from the resource `chess_month`.
    key: month, as `2024-01`.

    Raises GristmillError if the game dataset is not published, or was built with other values
    of the fields in `SHARED` than the run sets.
    """
    month = check_month(str(key))
    source = lake.published(games_folder(lake, month), GAMES, month)
    folder = lake.root / str(source.path)
    config = choices_of_dataset(lake, run, folder).cache()

    def make(attempt: Attempt) -> Summary:
        return cache_builder.build_splice_cache(
            folder,
            attempt.out,
            config,
            parts=attempt.parts,
            published=attempt.published,
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=f"{source.path}/{CACHE_FOLDER}",
        asset=CACHE,
        partition=month,
        code_version=CacheConfig.CODE_VERSION,
        config=config,
        inputs=[source],
        make=make,
        laws=lambda out: families.check(CACHE, Subject(out, inputs=[folder])),
        outer=source.path,
        # A sample takes 17 bytes, a ply of a row about 8; the parts take the same once more.
        space=5 * _bytes_of(folder),
    )


def splice_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of a month's legacy splices.

    lake: the data root.
    run: the config of the run, from the resource `chess_month`.
    key: month, as `2024-01`.

    Raises NothingToBuild if the config has `legacy = false`, GristmillError if the month's valid
    games are not published.
    """
    month, month_config = check_month(str(key)), choices(lake, run)
    if not month_config.legacy:
        raise NothingToBuild("legacy splices are switched off (legacy = false)")
    source = lake.published(valid_folder(lake, month), VALID, month)
    folder = lake.root / str(source.path)
    config = month_config.splice()

    def make(attempt: Attempt) -> Summary:
        return splice_builder.build_splice_dataset(
            folder,
            attempt.out,
            config,
            parts=attempt.parts,
            published=attempt.published,
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=lake.artifact("chess", "dataset", f"elite_{month}_cap{month_config.legacy_cap}"),
        asset=SPLICES,
        partition=month,
        code_version=SpliceConfig.CODE_VERSION,
        config=config,
        inputs=[source],
        make=make,
        laws=lambda out: families.check(SPLICES, Subject(out)),
        space=2 * _bytes_of(folder),
    )


def _inputs_of(folder: Path) -> list[Input]:
    """The inputs in the record of a published artifact; none if there is no artifact."""
    path = folder / provenance.RECORD
    return list(provenance.read_inputs(provenance.read_record(path), path)) if path.exists() else []


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())

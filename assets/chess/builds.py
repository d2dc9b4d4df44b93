"""What each artifact of a chess month is built from, how, and where it goes.

The assets themselves stand in `chess`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from assets import configs
from assets.chess.drops import RAW_DROP, drop_of
from gristmill import families, provenance
from gristmill.chess.build import game_dataset as dataset_builder
from gristmill.chess.build import splice_cache as cache_builder
from gristmill.chess.build import splice_dataset as splice_builder
from gristmill.chess.build import validate
from gristmill.chess.config import (
    CacheConfig,
    GameConfig,
    MonthConfig,
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

ELITE, VALID = "chess/elite_pgn", "chess/valid_games"
GAMES, CACHE, SPLICES = "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"
SETTINGS = "chess/month"
# What a dataset and its cache must have in common.
SHARED = ("min_context", "min_target", "seed")


def elite_build(lake: Lake, server: EliteArchive, key: str | None) -> Build:
    """Where a month's PGN is taken from: its drop, else what it was taken from, else the server."""
    month = check_month(str(key))
    artifact = elite_folder(lake, month)
    drop = drop_of(lake, month)
    config: ArchiveConfig | Limits = Limits()
    if drop is not None:
        inputs = lake.raw_inputs(artifact, [drop], RAW_DROP, month)
    else:
        # A drop that was archived away after it was taken is not asked for again.
        inputs = _inputs_of(lake.root / artifact)
        config = config if inputs else server.config()

    def make(attempt: Attempt) -> Summary:
        if isinstance(config, ArchiveConfig):
            return archive.fetch_month(
                month, attempt.out, config, parts=attempt.parts, progress=attempt.progress
            )
        if drop is None:
            raise GristmillError(
                f"{inputs[0].path}: the drop is gone: bring it back, or move {artifact} away to "
                "have the month downloaded"
            )
        return archive.take_drop(
            drop,
            attempt.out,
            month,
            ArchiveConfig(limits=config),
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
    )


def valid_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """What the validated games of a month are made from, how, and where they go."""
    month = check_month(str(key))
    source = lake.published(elite_folder(lake, month), ELITE, month)
    pgn = lake.root / str(source.path) / pgn_name(month)
    config = choices(lake, run).validate()
    # Never the path: ids of compat="reference" have the name in them.
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
        laws=lambda out: families.check(VALID, Subject(out)),
        # Rows hold the moves twice, and lie in the parts as well.
        space=6 * pgn.stat().st_size,
    )


def dataset_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """What a month's game dataset is made from, how, and where it goes."""
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
    """What the cache of a month's game dataset is made from, and how; it lies inside it."""
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
        # A sample takes 17 bytes, a ply of a row about 8; and the parts as much again.
        space=5 * _bytes_of(folder),
    )


def splice_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """What a month's legacy splices are made from, how, and where they go."""
    month, chosen = check_month(str(key)), choices(lake, run)
    if not chosen.legacy:
        raise NothingToBuild("legacy splices are not asked for (legacy = false)")
    source = lake.published(valid_folder(lake, month), VALID, month)
    folder = lake.root / str(source.path)
    config = chosen.splice()

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
        artifact=lake.artifact("chess", "dataset", f"elite_{month}_cap{chosen.legacy_cap}"),
        asset=SPLICES,
        partition=month,
        code_version=SpliceConfig.CODE_VERSION,
        config=config,
        inputs=[source],
        make=make,
        laws=lambda out: families.check(SPLICES, Subject(out)),
        space=2 * _bytes_of(folder),
    )


def choices(lake: Lake, run: BaseModel) -> MonthConfig:
    """The choices for a month: the run's, else `[chess.month]` of gristmill.toml, else defaults."""
    return configs.resolve(MonthConfig, lake.settings(SETTINGS), run)


def choices_of_dataset(lake: Lake, run: BaseModel, dataset: Path) -> MonthConfig:
    """The choices for the cache of a dataset: what they share is as the dataset was built.

    Raises GristmillError where the run says otherwise.
    """
    built = provenance.read_record(dataset / provenance.RECORD).config
    for name, value in configs.said(run).items():
        if name in SHARED and value != built[name]:
            raise GristmillError(
                f"{dataset}: was built with {name} = {built[name]}, its cache cannot have "
                f"{name} = {value}: materialize {GAMES} with it first"
            )
    return replace(choices(lake, run), **{name: built[name] for name in SHARED})


def elite_folder(lake: Lake, month: str) -> str:
    """Path of a month's PGN, relative to the data root."""
    return lake.artifact("chess", "raw", "elite", month)


def valid_folder(lake: Lake, month: str) -> str:
    """Path of a month's validated games, relative to the data root."""
    return lake.artifact("chess", "validated", f"elite_{month}")


def games_folder(lake: Lake, month: str) -> str:
    """Path of a month's game dataset, relative to the data root."""
    return lake.artifact("chess", "dataset", f"elite_{month}_game")


def _inputs_of(folder: Path) -> list[Input]:
    """What a published artifact was made from; nothing where there is none."""
    path = folder / provenance.RECORD
    return list(provenance.read_inputs(provenance.read_record(path), path)) if path.exists() else []


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())

"""Chess: what the artifacts of a month or a collection are built from, how, and where they go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.chess.builders import datasets, splits, validate
from gristmill.chess.config import (
    SHARED,
    SPLITS,
    ArchiveConfig,
    CacheConfig,
    CollectionConfig,
    Limits,
    MonthConfig,
    SubsetConfig,
    archive_config,
)
from gristmill.chess.format.folders import CACHE_FOLDER, pgn_name
from gristmill.chess.raw import download
from gristmill.chess.raw.drops import drop_of, folder_of, take_collection
from gristmill.chess.raw.pgn_text import check_month, is_month
from gristmill.contract import BadInput, GristmillError, NothingToBuild, Summary
from gristmill.data_root import DataRoot, NotRebuilt
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build, bytes_of
from gristmill.settings.tables import Settings
from gristmill.takedowns.left_out import left_out

_GAMES: Final = "chess/game_dataset"


def elite_build(wanted: Wanted) -> Build:
    """Returns the build of a month's PGN, or of those of a collection, which has a drop."""
    if not is_month(wanted.partition):
        return _collection_build(wanted)
    root, month = wanted.root, check_month(wanted.partition)
    artifact = _elite(root, month)
    drop = drop_of(root, month)
    config: ArchiveConfig | Limits = Limits()
    account, gone = None, [drop] if drop is not None else []
    left = left_out(root, gone, gone, "chess/raw_drop", month)
    if drop is not None:
        _, account = root.ready_drop("chess", drop.name)
        inputs = root.raw_inputs(artifact, [drop], "chess/raw_drop", month)
    else:
        # A PGN that came from a drop stays current after someone moved the drop away.
        inputs = _inputs_of(root.root / artifact)
        config = config if inputs else archive_config(**wanted.chosen)

    def make(attempt: Attempt) -> Summary:
        if isinstance(config, ArchiveConfig):
            return download.fetch_month(
                month, attempt.out, config, parts=attempt.parts, progress=attempt.progress
            )
        if drop is None:
            raise GristmillError(
                f"{inputs[0].path}: the drop is gone: bring it back, or move {artifact} away, and "
                "the month is downloaded"
            )
        return download.take_drop(
            drop,
            attempt.out,
            month,
            ArchiveConfig(limits=config),
            links=left.links(),
            progress=attempt.progress,
        )

    is_fetched = isinstance(config, ArchiveConfig)
    space = _unpacked(inputs)
    return wanted.build(
        *(artifact, config, inputs, make),
        space=space,
        account=account,
        fetches=is_fetched,
        left=left,
    )


def _collection_build(wanted: Wanted) -> Build:
    root, key = wanted.root, wanted.partition
    drop, account = root.ready_drop("chess", key)
    settings = root.settings("chess/collection", drop)
    config = CollectionConfig(**settings)
    artifact = _elite(root, key)
    files = [drop / name for name in account.taken[""]]
    left = left_out(root, [drop], files, "chess/raw_drop", key)
    inputs = root.raw_inputs(artifact, files, "chess/raw_drop", key)

    def make(attempt: Attempt) -> Summary:
        links = left.links()
        return take_collection(drop, attempt.out, config, links=links, progress=attempt.progress)

    space = _unpacked(inputs)
    return wanted.build(artifact, config, inputs, make, space=space, account=account, left=left)


def _unpacked(inputs: Sequence[Input]) -> int:
    """About the bytes of PGNs, of which packed ones are an eighth."""
    return sum(
        (item.bytes or 0) * (1 if str(item.path).lower().endswith("pgn") else 8) for item in inputs
    )


def valid_build(wanted: Wanted) -> Build:
    """Returns the build of the valid games of a month or a collection."""
    root, key = wanted.root, _checked(wanted.partition)
    source = root.published(_elite(root, key), "chess/elite_pgn", key)
    folder = root.root / str(source.path)
    pgns = [folder / pgn_name(key)] if is_month(key) else sorted(folder.glob("*.pgn"))
    config = wanted.config(MonthConfig).validate()
    if config.source_names and len(pgns) > 1:
        rule = f"names one PGN, and {key} has {len(pgns)}: leave it out of [chess.month]"
        raise BadInput("source_name", rule)
    # The name and not the path: ids of compat="reference" contain it.
    names = config.source_names or tuple(pgn.name for pgn in pgns)
    config = replace(config, source_names=names)

    def make(attempt: Attempt) -> Summary:
        return validate.validate(
            pgns, attempt.out, config, parts=attempt.parts, progress=attempt.progress
        )

    # Rows contain the moves twice, and the parts take the same once more.
    space = 6 * bytes_of(*pgns)
    return wanted.build(_valid(root, key), config, [source], make, space=space)


def dataset_build(wanted: Wanted) -> Build:
    """Returns the build of a month's game dataset."""
    source, folder = _valid_games(wanted)
    config = wanted.config(MonthConfig).game()
    make = _made(datasets.build_game_dataset, folder, config)
    artifact = _dataset(wanted.root, wanted.partition)
    return wanted.build(artifact, config, [source], make, space=2 * bytes_of(folder))


def cache_build(wanted: Wanted) -> Build:
    """Returns the build of the splice cache, which is a folder in the game dataset."""
    root, key = wanted.root, _checked(wanted.partition)
    source = root.published(_dataset(root, key), _GAMES, key)
    folder = root.root / str(source.path)
    built = provenance.read_record(folder / provenance.RECORD).config
    for name, value in wanted.chosen.items():
        if name in SHARED and value != built[name]:
            raise NotRebuilt(
                f"{folder}: was built with {name} = {built[name]}, so its cache cannot have "
                f"{name} = {value}: materialize {_GAMES} with {name} = {value} first"
            )
    of_month = wanted.config(MonthConfig)
    config = replace(of_month, **{name: built[name] for name in SHARED}).cache()
    return wanted.build(
        f"{source.path}/{CACHE_FOLDER}",
        config,
        [source],
        _made(datasets.build_splice_cache, folder, config),
        outer=source.path,
        # A sample takes 17 bytes, a ply of a row about 8; the parts take the same once more.
        space=5 * bytes_of(folder),
    )


def splice_build(wanted: Wanted) -> Build:
    """Returns the build of a month's legacy splices."""
    key, of_month = _checked(wanted.partition), wanted.config(MonthConfig)
    if not of_month.legacy:
        raise NothingToBuild("legacy splices are switched off (legacy = false)")
    source, folder = _valid_games(wanted)
    config = of_month.splice()
    make = _made(datasets.build_splice_dataset, folder, config)
    name = f"{folder_of(key)}_cap{of_month.legacy_cap}"
    artifact = wanted.root.artifact("chess", "dataset", name)
    return wanted.build(artifact, config, [source], make, space=4 * bytes_of(folder))


def subset_build(wanted: Wanted) -> Build:
    """Returns the build of a subset of a game dataset or of legacy rows."""
    root, key, config = wanted.root, _checked(wanted.partition), wanted.config(SubsetConfig)
    if not config.train + config.val + config.test:
        raise NothingToBuild("no subset is asked for: set train, val and test of [chess.subset]")
    folder, asset = _dataset(root, key), _GAMES
    if config.of == "rows":
        cap, asset = wanted_cap(root, key), "chess/splice_dataset"
        folder = root.artifact("chess", "dataset", f"{folder_of(key)}_cap{cap}")
    source = root.published(folder, asset, key)
    ending = "game" if config.of == "games" else "rows"
    artifact = root.artifact("chess", "subset", f"{folder_of(key)}_subset_{ending}")

    def make(attempt: Attempt) -> Summary:
        summary = splits.build_subset(
            root.root / folder, attempt.out, config, progress=attempt.progress
        )
        if config.of == "rows":
            return summary
        built = provenance.read_record(root.root / folder / provenance.RECORD).config
        cache = datasets.build_splice_cache(
            attempt.out,
            attempt.out / CACHE_FOLDER,
            CacheConfig(**{name: built[name] for name in SHARED}),
            published=attempt.published / CACHE_FOLDER,
            progress=attempt.progress,
        )
        files = {f"{CACHE_FOLDER}/{name}": note for name, note in cache.files.items()}
        return replace(summary, files={**summary.files, **files})

    return wanted.build(artifact, config, [source], make, space=bytes_of(root.root / folder))


def wanted_cap(root: DataRoot, key: str) -> int:
    """Returns the cap that files choose for the legacy rows of a month or a collection."""
    return int(month_settings(root, key).get("legacy_cap", MonthConfig().legacy_cap))


def subset_settings(root: DataRoot, key: str) -> Settings:
    """Returns `[chess.subset]` of a collection or the data root."""
    return root.settings("chess/subset", None if is_month(key) else root.inbox("chess") / key)


def has_subset(root: DataRoot, key: str) -> bool:
    """Whether files ask for a subset of a month or a collection."""
    given = subset_settings(root, key)
    return any(given.get(split) for split in SPLITS)


def month_settings(root: DataRoot, key: str) -> Settings:
    """Returns `[chess.month]` of a collection or the data root, with `games` for `allow_draws`."""
    given = root.settings("chess/month", None if is_month(key) else root.inbox("chess") / key)
    if given.get("allow_draws") is None or "games" in given:
        return given
    values = {name: value for name, value in given.items() if name != "allow_draws"}
    return Settings(
        {**values, "games": MonthConfig(allow_draws=given["allow_draws"]).games}, given.file
    )


def _checked(key: str) -> str:
    """The key of a month or a collection. Raises BadInput for a month that cannot be."""
    return check_month(key) if is_month(key) else key


def _elite(root: DataRoot, key: str) -> str:
    return root.artifact("chess", "raw", "elite" if is_month(key) else "collections", key)


def _valid(root: DataRoot, key: str) -> str:
    return root.artifact("chess", "validated", folder_of(key))


def _dataset(root: DataRoot, key: str) -> str:
    return root.artifact("chess", "dataset", f"{folder_of(key)}_game")


def _valid_games(wanted: Wanted) -> tuple[Input, Path]:
    """The valid games as an input, and their folder."""
    root, key = wanted.root, _checked(wanted.partition)
    source = root.published(_valid(root, key), "chess/valid_games", key)
    return source, root.root / str(source.path)


def _made(builder: Callable[..., Summary], folder: Path, config: Any) -> Callable[..., Summary]:
    """What makes an attempt by a builder that takes the games in a folder."""

    def make(attempt: Attempt) -> Summary:
        return builder(
            folder,
            attempt.out,
            config,
            parts=attempt.parts,
            published=attempt.published,
            progress=attempt.progress,
        )

    return make


def _inputs_of(folder: Path) -> list[Input]:
    """The inputs in the record of a published artifact; none if there is no artifact."""
    path = folder / provenance.RECORD
    return list(provenance.read_inputs(provenance.read_record(path), path)) if path.exists() else []

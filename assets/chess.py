"""Chess: a month of elite games, downloaded or dropped, becomes training data.

PGN to validated games, to a game dataset with its splice cache, and to legacy
splices where they are asked for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import dagster as dg

from assets import configs
from assets.checks import disk_checks
from assets.partitions import chess_months
from assets.publishing import Event, publish_asset
from gristmill import laws, provenance
from gristmill.artifact import Attempt, Build
from gristmill.chess import MonthConfig, versions
from gristmill.chess.archive import ArchiveConfig, fetch_month, pgn_name, take_drop
from gristmill.chess.months import check_month, month_before, month_in
from gristmill.chess.unpack import Limits
from gristmill.contract import BadInput, GristmillError, NothingToBuild, Summary
from gristmill.provenance import Input
from resources import EliteArchive, Lake

GROUP = "chess"
OWNERS = ["team:data"]
RAW_DROP, ELITE, VALID = "chess/raw_drop", "chess/elite_pgn", "chess/valid_games"
GAMES, CACHE, SPLICES = "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"
SETTINGS, CACHE_FOLDER = "chess/month", "runtime_splice_cache"
ENDINGS = (".zip", ".pgn", ".pgn.zst")
# What a dataset and its cache must have in common.
SHARED = ("min_context", "min_target", "seed")

# The choices for a month are those of a run, whatever assets are in it.
ChessMonth = configs.launchpad(MonthConfig, dg.ConfigurableResource)


def batch(months: int) -> dg.BackfillPolicy:
    """How many months go into one run of a backfill.

    Assets with unequal numbers get runs of their own, and those downstream are
    asked for the months that came through: so a month that is bad, or not
    published yet, holds up no other one at the next step.
    """
    return dg.BackfillPolicy.multi_run(max_partitions_per_run=months)


raw_drop = dg.AssetSpec(
    key=["chess", "raw_drop"],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"pgn"},
    owners=OWNERS,
    description=(
        "A month's games as a file in `drops/chess/`: `.zip`, `.pgn` or `.pgn.zst`, with the "
        "month in its name, as `lichess_elite_2024-01.zip`. Copy it there and its month is built; "
        "a month without one is downloaded when it is asked for."
    ),
)


@dg.asset(
    key=["chess", "elite_pgn"],
    deps=[raw_drop],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"pgn"},
    owners=OWNERS,
    code_version=versions.ELITE_PGN,
    backfill_policy=batch(6),
    output_required=False,
    pool="chess_archive",
    description=(
        "A month's PGN and `source.json`: taken from the drop where there is one, else downloaded "
        "from the elite database (resumed, checked). A month that is not published yet is told "
        "as an observation, and the run does not fail."
    ),
)
def elite_pgn(
    context: dg.AssetExecutionContext, lake: Lake, elite_archive: EliteArchive
) -> Iterator[Event]:
    from gristmill.chess.figures import archive_figures

    yield from publish_asset(context, partial(elite_build, lake, elite_archive), archive_figures)


@dg.asset(
    key=["chess", "valid_games"],
    deps=[elite_pgn],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=versions.VALID_GAMES,
    backfill_policy=batch(12),
    output_required=False,
    description=(
        "The month's games in UCI moves (`valid_games.jsonl`), the rejected ones with the reason "
        "(`invalid_games.csv`), those that are odd but good (`flagged_games.csv`), and in "
        "`sidecar/` the phase of every position and each game's place in the PGN."
    ),
)
def valid_games(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    yield from publish_asset(context, partial(valid_build, lake, chess_month), valid_preview)


@dg.asset(
    key=["chess", "game_dataset"],
    deps=[valid_games],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=versions.GAME_DATASET,
    backfill_policy=batch(24),
    output_required=False,
    description=(
        "One compact row a game in `train.jsonl`, `val.jsonl` and `test.jsonl`. A game's split "
        "depends on its moves alone, so that the same game never stands in two, in no month."
    ),
)
def game_dataset(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    from gristmill.chess.figures import dataset_figures

    yield from publish_asset(context, partial(dataset_build, lake, chess_month), dataset_figures)


@dg.asset(
    key=["chess", "splice_cache"],
    deps=[game_dataset],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"numpy"},
    owners=OWNERS,
    code_version=versions.SPLICE_CACHE,
    backfill_policy=batch(48),
    output_required=False,
    description=(
        "`runtime_splice_cache/` in the game dataset's folder: for every sample the byte offset "
        "of its game, the splice index and the phase, as flat binary files that training maps."
    ),
)
def splice_cache(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    from gristmill.chess.figures import cache_figures

    yield from publish_asset(context, partial(cache_build, lake, chess_month), cache_figures)


@dg.asset(
    key=["chess", "splice_dataset"],
    deps=[valid_games],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=versions.SPLICE_DATASET,
    backfill_policy=batch(48),
    output_required=False,
    description=(
        "The legacy form: one row a sample with its whole context, at most `legacy_cap` of a "
        "game. Not built where `legacy` is false."
    ),
)
def splice_dataset(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    from gristmill.chess.figures import splice_figures

    yield from publish_asset(context, partial(splice_build, lake, chess_month), splice_figures)


def elite_build(lake: Lake, archive: EliteArchive, key: str | None) -> Build:
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
        config = config if inputs else archive.config()

    def make(attempt: Attempt) -> Summary:
        if isinstance(config, ArchiveConfig):
            return fetch_month(month, attempt.out, config, parts=attempt.parts)
        if drop is None:
            raise GristmillError(
                f"{inputs[0].path}: the drop is gone: bring it back, or move {artifact} away to "
                "have the month downloaded"
            )
        return take_drop(drop, attempt.out, month, ArchiveConfig(limits=config))

    return Build(
        root=lake.root,
        artifact=artifact,
        asset=ELITE,
        partition=month,
        code_version=versions.ELITE_PGN,
        config=config,
        inputs=inputs,
        make=make,
        laws=partial(laws.check, ELITE),
    )


def valid_build(lake: Lake, run: dg.ConfigurableResource, key: str | None) -> Build:
    """What the validated games of a month are made from, how, and where they go."""
    month = check_month(str(key))
    source = lake.published(elite_folder(lake, month), ELITE, month)
    pgn = lake.root / str(source.path) / pgn_name(month)
    config = choices(lake, run).validate()
    # Never the path: ids of compat="reference" have the name in them.
    config = replace(config, source_names=config.source_names or (pgn.name,))

    def make(attempt: Attempt) -> Summary:
        from gristmill.chess.validation import validate

        return validate([pgn], attempt.out, config, parts=attempt.parts)

    return Build(
        root=lake.root,
        artifact=valid_folder(lake, month),
        asset=VALID,
        partition=month,
        code_version=versions.VALID_GAMES,
        config=config,
        inputs=[source],
        make=make,
        laws=partial(laws.check, VALID),
        # Rows hold the moves twice, and lie in the parts as well.
        space=6 * pgn.stat().st_size,
    )


def dataset_build(lake: Lake, run: dg.ConfigurableResource, key: str | None) -> Build:
    """What a month's game dataset is made from, how, and where it goes."""
    month = check_month(str(key))
    source = lake.published(valid_folder(lake, month), VALID, month)
    folder = lake.root / str(source.path)
    config = choices(lake, run).game()

    def make(attempt: Attempt) -> Summary:
        from gristmill.chess.game_dataset import build_game_dataset

        return build_game_dataset(
            folder, attempt.out, config, parts=attempt.parts, published=attempt.published
        )

    return Build(
        root=lake.root,
        artifact=dataset_folder(lake, month),
        asset=GAMES,
        partition=month,
        code_version=versions.GAME_DATASET,
        config=config,
        inputs=[source],
        make=make,
        laws=partial(laws.check, GAMES),
        space=2 * _bytes_of(folder),
    )


def cache_build(lake: Lake, run: dg.ConfigurableResource, key: str | None) -> Build:
    """What the cache of a month's game dataset is made from, and how; it lies inside it."""
    month = check_month(str(key))
    source = lake.published(dataset_folder(lake, month), GAMES, month)
    folder = lake.root / str(source.path)
    config = choices_of_dataset(lake, run, folder).cache()

    def make(attempt: Attempt) -> Summary:
        from gristmill.chess.splice_cache import build_splice_cache

        return build_splice_cache(
            folder, attempt.out, config, parts=attempt.parts, published=folder
        )

    return Build(
        root=lake.root,
        artifact=f"{source.path}/{CACHE_FOLDER}",
        asset=CACHE,
        partition=month,
        code_version=versions.SPLICE_CACHE,
        config=config,
        inputs=[source],
        make=make,
        laws=partial(laws.check, CACHE, inputs=[folder]),
        outer=source.path,
        # A sample takes 17 bytes, a ply of a row about 8; and the parts as much again.
        space=5 * _bytes_of(folder),
    )


def splice_build(lake: Lake, run: dg.ConfigurableResource, key: str | None) -> Build:
    """What a month's legacy splices are made from, how, and where they go."""
    month, chosen = check_month(str(key)), choices(lake, run)
    if not chosen.legacy:
        raise NothingToBuild("legacy splices are not asked for (legacy = false)")
    source = lake.published(valid_folder(lake, month), VALID, month)
    folder = lake.root / str(source.path)
    config = chosen.splice()

    def make(attempt: Attempt) -> Summary:
        from gristmill.chess.splice_dataset import build_splice_dataset

        return build_splice_dataset(
            folder, attempt.out, config, parts=attempt.parts, published=attempt.published
        )

    return Build(
        root=lake.root,
        artifact=lake.artifact("chess", "dataset", f"elite_{month}_cap{chosen.legacy_cap}"),
        asset=SPLICES,
        partition=month,
        code_version=versions.SPLICE_DATASET,
        config=config,
        inputs=[source],
        make=make,
        laws=partial(laws.check, SPLICES),
        space=2 * _bytes_of(folder),
    )


def choices(lake: Lake, run: dg.ConfigurableResource) -> MonthConfig:
    """The choices for a month: the run's, else `[chess.month]` of gristmill.toml, else defaults."""
    return configs.resolve(MonthConfig, lake.settings(SETTINGS), run)


def choices_of_dataset(lake: Lake, run: dg.ConfigurableResource, dataset: Path) -> MonthConfig:
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
    return lake.artifact("chess", "raw", "elite", month)


def valid_folder(lake: Lake, month: str) -> str:
    return lake.artifact("chess", "validated", f"elite_{month}")


def dataset_folder(lake: Lake, month: str) -> str:
    return lake.artifact("chess", "dataset", f"elite_{month}_game")


def drop_of(lake: Lake, month: str) -> Path | None:
    """The file in `drops/chess/` that carries the month. Raises BadInput where there are two."""
    files = [path for path in _drops(lake) if month_in(path.name) == month]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise BadInput(files[0].parent, f"{len(files)} files carry {month}: {names}: leave one")
    return files[0] if files else None


def drop_refusal(path: Path) -> str | None:
    """Why a file in `drops/chess/` is no month that can be built now, None where it is."""
    month = month_in(path.name)
    if month is None or not chess_months.has_partition_key(month):
        return f"{month or path.name} is no month that is over: the archive begins with 2020-06"
    return None


def at_hand(lake: Lake) -> set[str]:
    """The months that can be built without asking the server: dropped, or downloaded before."""
    dropped = {str(month_in(path.name)) for path in _drops(lake) if drop_refusal(path) is None}
    built = lake.root.glob(f"chess/raw/elite/*/{provenance.RECORD}")
    return dropped | {path.parent.name for path in built}


def _drops(lake: Lake) -> list[Path]:
    inbox = lake.inbox("chess")
    files = sorted(inbox.iterdir()) if inbox.is_dir() else []
    return [path for path in files if path.name.endswith(ENDINGS) and not path.name.startswith(".")]


def _inputs_of(folder: Path) -> list[Input]:
    """What a published artifact was made from; nothing where there is none."""
    path = folder / provenance.RECORD
    return list(provenance.read_inputs(provenance.read_record(path), path)) if path.exists() else []


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def valid_preview(folder: Path) -> Mapping[str, str | int | float]:
    from gristmill.chess.figures import validated_figures

    before = folder.with_name(f"elite_{month_before(folder.name.removeprefix('elite_'))}")
    return validated_figures(folder, before if (before / provenance.RECORD).exists() else None)


MONTH = [elite_pgn, valid_games, game_dataset, splice_cache, splice_dataset]
chess_month = dg.define_asset_job(
    "chess_month",
    selection=MONTH,
    description=(
        "One month from the archive to training data. What is chosen for it stands in one place, "
        "`resources: chess_month: config:` here, or `[chess.month]` of gristmill.toml."
    ),
)

ASSETS = [raw_drop, *MONTH]
JOBS = [chess_month]
CHECKS = [
    *disk_checks(elite_pgn, "chess/raw/elite"),
    *disk_checks(valid_games, "chess/validated"),
    *disk_checks(game_dataset, "chess/dataset"),
    *disk_checks(splice_cache, "chess/dataset"),
    *disk_checks(splice_dataset, "chess/dataset"),
]
RESOURCES = {"elite_archive": EliteArchive(), "chess_month": ChessMonth()}

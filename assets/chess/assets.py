"""The assets of chess: the PGN of a month, its valid games, and the datasets from them.

A month is a drop or a download. The legacy splices are built only if the config asks for them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import dagster as dg

from assets import configs
from assets.checks import disk_checks
from assets.chess.partitions import chess_months
from assets.publishing import Event, publish_asset
from gristmill import provenance
from gristmill.chess.config import (
    CacheConfig,
    GameConfig,
    MonthConfig,
    SpliceConfig,
    ValidateConfig,
)
from gristmill.chess.raw.archive_config import ArchiveConfig
from gristmill.chess.raw.months import month_before
from gristmill.contract import Violation
from resources import EliteArchive, Lake

GROUP = "chess/monthly"
OWNERS = ["team:data"]

# One config for all assets of a run, so that they agree about the month.
ChessMonth = configs.launchpad(MonthConfig, dg.ConfigurableResource)


def batch(months: int) -> dg.BackfillPolicy:
    """Returns the backfill policy of an asset.

    Assets with different policies get separate runs, and Dagster requests the assets downstream
    only for the months that were built. So a month that is bad or not published yet does not
    delay the others.

    months: how many months go into one run of a backfill.
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
        "month in its name, as `lichess_elite_2024-01.zip`. Copy it there, and the sensor builds "
        "the month. A month without a drop is downloaded when someone materializes it."
    ),
)


@dg.asset(
    key=["chess", "elite_pgn"],
    deps=[raw_drop],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"pgn"},
    owners=OWNERS,
    code_version=ArchiveConfig.CODE_VERSION,
    backfill_policy=batch(6),
    output_required=False,
    pool="chess_archive",
    description=(
        "A month's PGN and `source.json`: from the drop if there is one, else downloaded from the "
        "elite database (resumed, checked). A month that the database has not published yet is "
        "reported as an observation, and the run does not fail."
    ),
)
def elite_pgn(
    context: dg.AssetExecutionContext, lake: Lake, elite_archive: EliteArchive
) -> Iterator[Event]:
    from assets.chess import builds
    from gristmill.chess.show import metrics

    yield from publish_asset(
        context, partial(builds.elite_build, lake, elite_archive), metrics.archive_figures
    )


@dg.asset(
    key=["chess", "valid_games"],
    deps=[elite_pgn],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=ValidateConfig.CODE_VERSION,
    backfill_policy=batch(12),
    output_required=False,
    description=(
        "The month's games in UCI moves (`valid_games.jsonl`), the rejected games with the reason "
        "(`invalid_games.csv`), the games that are valid but unusual (`flagged_games.csv`), and in "
        "`sidecar/` the phase of every position and each game's place in the PGN."
    ),
)
def valid_games(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    from assets.chess import builds

    yield from publish_asset(context, partial(builds.valid_build, lake, chess_month), valid_preview)


@dg.asset(
    key=["chess", "game_dataset"],
    deps=[valid_games],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=GameConfig.CODE_VERSION,
    backfill_policy=batch(24),
    output_required=False,
    description=(
        "One compact row a game in `train.jsonl`, `val.jsonl` and `test.jsonl`. A game's split "
        "depends on its moves alone, so that the same game is never in two splits, in any month."
    ),
)
def game_dataset(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    from assets.chess import builds
    from gristmill.chess.show import metrics

    yield from publish_asset(
        context, partial(builds.dataset_build, lake, chess_month), metrics.dataset_figures
    )


@dg.asset(
    key=["chess", "splice_cache"],
    deps=[game_dataset],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"numpy"},
    owners=OWNERS,
    code_version=CacheConfig.CODE_VERSION,
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
    from assets.chess import builds
    from gristmill.chess.show import metrics

    yield from publish_asset(
        context, partial(builds.cache_build, lake, chess_month), metrics.cache_figures
    )


@dg.asset(
    key=["chess", "splice_dataset"],
    deps=[valid_games],
    partitions_def=chess_months,
    group_name=GROUP,
    kinds={"json"},
    owners=OWNERS,
    code_version=SpliceConfig.CODE_VERSION,
    backfill_policy=batch(48),
    output_required=False,
    description=(
        "The legacy form: one row a sample with its complete context, at most `legacy_cap` rows "
        "of a game. Not built if `legacy` is false. The cap is in the folder's name: if you change "
        "it, the folder of the other cap stays until you remove it."
    ),
)
def splice_dataset(
    context: dg.AssetExecutionContext,
    lake: Lake,
    chess_month: ChessMonth,  # type: ignore[valid-type]
) -> Iterator[Event]:
    from assets.chess import builds
    from gristmill.chess.show import metrics

    yield from publish_asset(
        context, partial(builds.splice_build, lake, chess_month), metrics.splice_figures
    )


def valid_preview(folder: Path) -> Mapping[str, str | int | float]:
    """Returns figures of a month's valid games, compared with the month before if it is built."""
    from gristmill.chess.show import metrics

    before = folder.with_name(f"elite_{month_before(folder.name.removeprefix('elite_'))}")
    return metrics.validated_figures(
        folder, before if (before / provenance.RECORD).exists() else None
    )


def _valid_notes(folder: Path) -> Iterator[Violation]:
    from gristmill.chess.laws.notes import validated_notes

    return validated_notes(folder)


def _dataset_notes(folder: Path) -> Iterator[Violation]:
    from gristmill.chess.laws.notes import dataset_notes

    return dataset_notes(folder)


MONTH = [elite_pgn, valid_games, game_dataset, splice_cache, splice_dataset]
chess_month = dg.define_asset_job(
    "chess_month",
    selection=MONTH,
    description=(
        "One month from the archive to training data. All choices for it are in one place: "
        "`resources: chess_month: config:` in the launchpad, or `[chess.month]` in gristmill.toml."
    ),
)

ASSETS: list[dg.AssetsDefinition | dg.AssetSpec] = [raw_drop, *MONTH]
CHECKS = [
    *disk_checks(elite_pgn, "chess/raw/elite", across=True),
    *disk_checks(valid_games, "chess/validated", has_config=True, notes=_valid_notes),
    *disk_checks(game_dataset, "chess/dataset", has_config=True, notes=_dataset_notes),
    *disk_checks(splice_cache, "chess/dataset", has_config=True),
    *disk_checks(splice_dataset, "chess/dataset", has_config=True),
]
RESOURCES = {"elite_archive": EliteArchive(), "chess_month": ChessMonth()}

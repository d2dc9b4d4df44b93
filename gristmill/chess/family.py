"""Chess: its assets, the drops that they are built from, and what it says of their artifacts."""

from __future__ import annotations

from functools import partial

from gristmill.asset import Asset
from gristmill.chess import code
from gristmill.chess.config import (
    COLLECTIONS,
    SHARED,
    ArchiveConfig,
    CacheConfig,
    CollectionConfig,
    GameConfig,
    MonthConfig,
    SpliceConfig,
    SubsetConfig,
    ValidateConfig,
)
from gristmill.chess.raw.pgn_text import MONTH_ENDINGS, month_in
from gristmill.families import Catalog, Law, Option, Source
from gristmill.inbox import DropKind, Shape
from gristmill.lazy_exports import call
from gristmill.settings.tables import Table

_GROUP = "chess/monthly"
_SHAPE = Shape(MONTH_ENDINGS, key_in=month_in, any_case=True, folders=True)
_MONTH = Table("chess/month", MonthConfig, ["chess"])
_READ = "gristmill.chess.read.trace"
_TRACE = f"{_READ}:traced"
_SETTINGS = call("gristmill.chess.builds:month_settings")
# A person who wants the files of the original code leaves these to the readers.
_EXCUSE = ("compat", "reference")
# Another name of `games`, which says the same.
_OLDER = ["allow_draws"]
_SAMPLE_COUNTS = ("samples/train", "samples/val", "samples/test")

_asset = partial(Asset, group=_GROUP, partitions=COLLECTIONS)
# What the assets that read `[chess.month]` have alike.
_of_month = partial(
    _asset,
    labels=["json"],
    table=_MONTH,
    given=_SETTINGS,
    resource="chess_month",
)

# Assets with different sizes of a batch get separate runs, and Dagster requests the assets
# downstream only for the months that were built. So a month that is bad or not published yet does
# not delay the others.
_ELITE = _asset(
    "chess/elite_pgn",
    laws=[Law("archive", call("gristmill.chess.laws.games:archive_laws"))],
    trace=call(_TRACE, "chess/elite_pgn"),
    code=code.ELITE,
    text="A month's PGN, or those of a collection, and `source.json`: from the drop if there is "
    "one, else a month is downloaded from the elite database (resumed, checked). A month that the "
    "database has not published yet is reported as an observation, and the run does not fail.",
    labels=["pgn"],
    place="chess/raw",
    inputs=["chess/raw_drop"],
    version=ArchiveConfig.CODE_VERSION,
    build=call("gristmill.chess.builds:elite_build"),
    resource="elite_archive",
    across=True,
    batch=6,
    pool="chess_archive",
    available=call("gristmill.chess.raw.drops:available"),
)

_VALID = _of_month(
    "chess/valid_games",
    laws=[
        Law(
            "validated",
            call("gristmill.chess.laws.games:validated_laws"),
            rules_excused_by={"moves_legal": _EXCUSE},
        ),
        Law(
            "event_lines",
            call("gristmill.chess.laws.games:event_line_laws"),
            needs_inputs=True,
            excused_by=_EXCUSE,
        ),
    ],
    trace=call(_TRACE, "chess/valid_games"),
    history=call(f"{_READ}:rows"),
    rows=("valid_games",),
    set_aside={"reasons": "rejected"},
    counted=call("gristmill.chess.laws.games:of_month"),
    code=code.VALID,
    text="The month's games in UCI moves (`valid_games.jsonl`), the rejected games with the reason "
    "(`invalid_games.csv`), the games that are valid but unusual (`flagged_games.csv`), and in "
    "`sidecar/` the phase of every position, packed moves and each game's place in the PGN.",
    place="chess/validated",
    inputs=["chess/elite_pgn"],
    version=ValidateConfig.CODE_VERSION,
    build=call("gristmill.chess.builds:valid_build"),
    notes=call("gristmill.chess.laws.games:validated_notes"),
    batch=12,
)

_GAMES = _of_month(
    "chess/game_dataset",
    laws=[Law("dataset", call("gristmill.chess.laws.datasets:dataset_laws"))],
    trace=call(_TRACE, "chess/game_dataset"),
    history=call(f"{_READ}:rows"),
    past=call(f"{_READ}:past"),
    source=call("gristmill.chess.read.dataset:opened"),
    rows=("games/train", "games/val", "games/test"),
    out_of=("input_games", "without the winner that the setting games asks for, short or equal"),
    counted=call("gristmill.chess.laws.games:of_dataset"),
    code=code.GAMES,
    text="One compact row a game in `train.jsonl`, `val.jsonl` and `test.jsonl`. A game's split "
    "depends on its moves alone, so that the same game is never in two splits, in any month.",
    place="chess/dataset",
    inputs=["chess/valid_games"],
    version=GameConfig.CODE_VERSION,
    build=call("gristmill.chess.builds:dataset_build"),
    left_out=_OLDER,
    batch=24,
)

_CACHE = _of_month(
    "chess/splice_cache",
    laws=[Law("cache", call("gristmill.chess.laws.datasets:cache_laws"))],
    trace=call(_TRACE, "chess/splice_cache"),
    rows=_SAMPLE_COUNTS,
    code=code.CACHE,
    text="`runtime_splice_cache/` in the game dataset's folder: for every sample the byte offset "
    "of its game, the splice index and the phase, as flat binary files that training maps.",
    labels=["numpy"],
    place="chess/dataset",
    inputs=["chess/game_dataset"],
    version=CacheConfig.CODE_VERSION,
    build=call("gristmill.chess.builds:cache_build"),
    left_out=SHARED,
    recorded={"cache_cap": "max_samples_per_game"},
    batch=48,
)

_SPLICES = _of_month(
    "chess/splice_dataset",
    laws=[Law("splices", call("gristmill.chess.laws.datasets:splice_laws"))],
    trace=call(_TRACE, "chess/splice_dataset"),
    history=call(f"{_READ}:rows"),
    rows=_SAMPLE_COUNTS,
    code=code.SPLICES,
    text="The legacy form: one row a sample with its complete context, at most `legacy_cap` rows "
    "of a game. Not built if `legacy` is false. The cap is in the folder's name: if you change "
    "it, the folder of the other cap stays until you remove it.",
    place="chess/dataset",
    inputs=["chess/valid_games"],
    version=SpliceConfig.CODE_VERSION,
    build=call("gristmill.chess.builds:splice_build"),
    left_out=_OLDER,
    recorded={"legacy_cap": "max_samples_per_game", "legacy_k": "k"},
    batch=48,
)

_SUBSET = _asset(
    "chess/subset",
    laws=[Law("subset", call("gristmill.chess.laws.datasets:subset_laws"))],
    trace=call(_TRACE, "chess/subset"),
    history=call(f"{_READ}:rows"),
    rows=_SAMPLE_COUNTS,
    code=code.SUBSET,
    table=Table("chess/subset", SubsetConfig, ["chess"]),
    text="A part of the games, or of the legacy rows, that keeps the shares of its strata (phase, "
    "result, Elo, ply) or has as many rows of each, and `vocabulary.csv` with its moves. Built "
    "only if `[chess.subset]` says how many rows.",
    labels=["json"],
    place="chess/subset",
    inputs=["chess/game_dataset", "chess/splice_dataset"],
    version=SubsetConfig.CODE_VERSION,
    build=call("gristmill.chess.builds:subset_build"),
    given=call("gristmill.chess.builds:subset_settings"),
    is_asked=call("gristmill.chess.builds:has_subset"),
    batch=48,
)

_DROP = Source(
    asset="chess/raw_drop",
    inbox="chess",
    drop=DropKind(
        call("gristmill.chess.raw.drops:account"),
        _SHAPE,
        column_states=call("gristmill.chess.raw.drops:column_states"),
    ),
    text="A month's games as a file in `drops/chess/`: `.zip`, `.pgn` or `.pgn.zst`, with the "
    "month in its name, as `lichess_elite_2024-01.zip`; or any PGNs as a folder, a collection. "
    "Copy it there, and the sensor builds it. A month without a drop is downloaded when someone "
    "materializes it.",
    group=_GROUP,
    labels=["pgn"],
    partitions=COLLECTIONS,
    targets=[each.asset for each in (_ELITE, _VALID, _GAMES, _CACHE, _SPLICES)],
)

CATALOG = Catalog(
    kinds=[_ELITE, _VALID, _GAMES, _CACHE, _SPLICES, _SUBSET],
    sources=[_DROP],
    asset_of=call("gristmill.chess.format.folders:asset_of"),
    settings=[Table("chess/collection", CollectionConfig, ["chess"])],
    columns=call("gristmill.chess.show:columns"),
    facts=call("gristmill.chess.show:facts"),
    tables=call("gristmill.chess.show:tables"),
    splits=call("gristmill.chess.show:splits"),
    options=[
        Option(
            "ply", int, "Chess: the position after so many plies of a game.", commands=("show",)
        ),
        Option("split", str, "The split; train by default.", choices=("train", "val", "test")),
    ],
    samples={
        "chess/sample_2024-01.zip": call("gristmill.chess.samples:write_sample", "2024-01", 600),
        "chess/sample_2024-02.pgn": call("gristmill.chess.samples:write_sample", "2024-02", 700),
    },
    place_of=lambda drop: _SHAPE.key_of(drop.name),
    forgets={"chess": call("gristmill.chess.raw.drops:forgets")},
)

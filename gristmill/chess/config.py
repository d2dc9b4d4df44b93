"""The configs of chess: of a month, of each builder, of the archive and of a collection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from gristmill.settings import fields as kinds
from gristmill.settings.fields import (
    ADDED_LATER,
    IN_EVENT,
    NO_EFFECT,
    Checked,
    Count,
    Ge,
    Gt,
    Help,
    Le,
    Positive,
    Share,
    Unit,
)

# The winners that each kind of `games` takes; "" for any.
WINNERS_OF: Mapping[str, str] = {"decisive": "WB", "finished": "WBD", "all": ""}
# The splits of every dataset, in order.
SPLITS = ("train", "val", "test")
# Fields that a game dataset gives its cache, since both must have them alike.
SHARED = ("min_context", "min_target", "seed")

Plies = Annotated[Positive, Unit("plies")]
MinContext = Annotated[Plies, Help("Plies of a sample's context at least, from 1.")]
MinTarget = Annotated[Plies, Help("Plies after a sample's context at least, from 1.")]
Seed = Annotated[kinds.Seed, Help("Seed of the split and of the caps, 0 to 2**63 - 1.")]
CacheCap = Annotated[
    Count, Unit("samples"), Help("Samples of a game in the cache at most, 0 for all.")
]
LegacyCap = Annotated[Count, Unit("rows"), Help("Legacy rows of a game at most, 0 for all.")]
LegacyK = Annotated[Plies, Help("Plies of a legacy row's target at most.")]
Compat = Annotated[
    Literal["current", "reference"],
    IN_EVENT,
    Help(
        "'reference' makes the files of the original code: ids with the path in them, claimable "
        "draws rejected, games with FEN, variant or null moves kept."
    ),
]
MinPlies = Annotated[
    Count, Unit("plies"), Help("Games with fewer plies are rejected as too_short.")
]
EloFloor = Annotated[
    Count,
    Unit("points of rating"),
    Help("Games with a rating below this, or without one, are rejected as below_elo; 0 for off."),
]
# The time classes are those of Lichess (docs/formats/chess.md#filters).
TimeControls = Annotated[
    tuple[Literal["ultrabullet", "bullet", "blitz", "rapid", "classical", "correspondence"], ...],
    Help("Time classes to keep, by the TimeControl of Lichess or chess.com; empty keeps all."),
]
DropAbandoned = Annotated[
    bool,
    Help(
        "Reject games whose Termination, of Lichess or chess.com, is not a normal end, as "
        "abandoned."
    ),
]
DropBots = Annotated[
    bool, ADDED_LATER, Help("Reject games in which a player has the title BOT, as bot_player.")
]
Titles = Annotated[
    tuple[str, ...],
    ADDED_LATER,
    Help("Titles that both players must have one of, as GM; other games are other_title."),
]
Events = Annotated[
    tuple[str, ...],
    ADDED_LATER,
    Help("Texts one of which is in the tag Event, in any case; other games are other_event."),
]
Flagged = Annotated[
    Literal["keep", "drop"],
    ADDED_LATER,
    Help("'drop' rejects the valid games with the flag of this name, 'keep' only flags them."),
]
_SHARE = Annotated[Share, Unit("fraction of the games")]
TrainRatio = Annotated[_SHARE, Help("Fraction of the games in train, 0 to 1.")]
ValRatio = Annotated[_SHARE, Help("Fraction of the games in val, 0 to 1; the rest is test.")]
Split = Annotated[
    Literal["moves", "opening", "shuffle"],
    IN_EVENT,
    Help(
        "'moves' places a game by a stable hash of its moves and the seed, 'opening' by one of its "
        "first opening_plies moves, 'shuffle' by the seeded shuffle of ids of the original code."
    ),
]
OpeningPlies = Annotated[
    Plies,
    Le(200),
    ADDED_LATER,
    Help("Plies that are the opening of a game, for split = 'opening'."),
]
Games = Annotated[
    Literal["decisive", "finished", "all"],
    ADDED_LATER,
    Help(
        "'decisive' takes games that somebody won, 'finished' draws too, 'all' also games without "
        "a result."
    ),
]
AllowDraws = Annotated[
    bool | None,
    Help("The older name of games: true is games = 'finished', false games = 'decisive'."),
]
KeepHeaders = Annotated[bool, Help("Write the tags of a game into its row.")]
AllowBots = Annotated[bool, Help("Accept games of a live bot.")]
SubsetRows = Annotated[
    Count, Unit("rows"), Help("Rows of the split at most; all where it has fewer.")
]
WriteVocabulary = Annotated[bool, Help("Write the vocabulary of the train games into the cache.")]
DropDuplicates = Annotated[
    bool,
    ADDED_LATER,
    Help("Take rows with an equal game_id once, and list the others as dropped."),
]
ShareOfRows = Annotated[
    Positive, Unit("bytes"), NO_EFFECT, Help("Size of a byte range of rows, about.")
]
Workers = Annotated[kinds.Workers, Help("Processes that work at the same time.")]

Config = TypeVar("Config")


class _Unstated(str):
    """A default, which is not taken for an equal value that somebody stated."""

    __slots__ = ()


_GAMES: Any = _Unstated("decisive")
# What `games` is called in older configs. Fingerprints have the value of each kind.
_ALLOW_DRAWS: Mapping[str, bool | None] = {"decisive": False, "finished": True, "all": None}


@dataclass(frozen=True)
class _OfGames(Checked):
    """Which valid games a dataset takes, and the split of each; records have `allow_draws`, too.

    Raises ValueError also where games and allow_draws disagree, or the ratios exceed 1 together.
    """

    CODE_VERSION: ClassVar = ""  # each builder's config has its own

    min_context: MinContext = 8
    min_target: MinTarget = 1
    seed: Seed = 7
    train_ratio: TrainRatio = 0.8
    val_ratio: ValRatio = 0.1
    split: Split = "moves"
    opening_plies: OpeningPlies = 16
    games: Games = _GAMES
    allow_draws: AllowDraws = None
    allow_live_bot_games: AllowBots = False
    drop_duplicates: DropDuplicates = False

    def __post_init__(self) -> None:
        super().__post_init__()
        train, val = self.train_ratio, self.val_ratio
        if train + val > 1:
            raise ValueError(f"train_ratio {train} and val_ratio {val} must sum to 0 .. 1")
        stated = None if isinstance(self.games, _Unstated) else str(self.games)
        older = {True: "finished", False: "decisive", None: stated or str(_GAMES)}[self.allow_draws]
        if stated not in (None, older):
            draws = str(self.allow_draws).lower()
            raise ValueError(
                f'games = "{stated}" and allow_draws = {draws}, which means games = "{older}", '
                "disagree: leave allow_draws out"
            )
        # The configs are frozen. What nobody stated may be replaced.
        is_default = stated is None and self.allow_draws is None
        object.__setattr__(self, "games", self.games if is_default else older)
        object.__setattr__(self, "allow_draws", None)

    def recorded(self) -> dict[str, Any]:
        values = super().recorded()
        return {**values, "allow_draws": _ALLOW_DRAWS[values["games"]]}


@dataclass(frozen=True)
class _OfPgn(Checked):
    """Which games of a PGN are valid."""

    CODE_VERSION: ClassVar = ""

    compat: Compat = "current"
    min_plies: MinPlies = 8
    elo_floor: EloFloor = 0
    time_controls: TimeControls = ()
    drop_abandoned: DropAbandoned = False
    drop_bots: DropBots = False
    titles: Titles = ()
    events: Events = ()
    number_gap: Flagged = "keep"
    no_result: Flagged = "keep"
    ply_count: Flagged = "keep"
    passed_over: Flagged = "keep"


@dataclass(frozen=True)
class ValidateConfig(_OfPgn):
    """How PGN becomes valid games (docs/formats/chess.md#validation)."""

    CODE_VERSION: ClassVar = "8"

    source_names: Annotated[
        tuple[str, ...], Help("One source_file for each PGN; empty for its name.")
    ] = ()
    share_bytes: Annotated[
        Positive, Unit("bytes"), NO_EFFECT, Help("Size of a byte range of PGN, about.")
    ] = 2 << 20
    workers: Workers = 1


@dataclass(frozen=True)
class GameConfig(_OfGames):
    """How valid games become a game dataset (docs/formats/chess.md#game-dataset).

    The splits: docs/formats/chess.md#split-by-moves, docs/formats/chess.md#split-by-opening and
    docs/formats/chess.md#split-by-shuffle. `games`: docs/formats/chess.md#eligibility.
    """

    CODE_VERSION: ClassVar = "3"

    keep_headers: KeepHeaders = False
    share_bytes: ShareOfRows = 4 << 20
    workers: Workers = 1


@dataclass(frozen=True)
class SpliceConfig(_OfGames):
    """How valid games become legacy rows (docs/formats/chess.md#legacy-rows).

    Raises ValueError also where k is less than min_target.
    """

    CODE_VERSION: ClassVar = "1"

    k: LegacyK = 4
    max_samples_per_game: LegacyCap = 0
    share_bytes: ShareOfRows = 1 << 20
    workers: Workers = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < self.min_target:
            raise ValueError(f"k ({self.k}) must not be less than min_target ({self.min_target})")


@dataclass(frozen=True)
class SubsetConfig(Checked):
    """How a subset is taken of a dataset (docs/formats/chess.md#subset); none where all are 0."""

    CODE_VERSION: ClassVar = "2"

    of: Annotated[
        Literal["games", "rows"],
        Help("'games' takes rows of the game dataset, 'rows' those of the legacy form."),
    ] = "games"
    train: SubsetRows = 0
    val: SubsetRows = 0
    test: SubsetRows = 0
    by: Annotated[
        tuple[Literal["phase", "result", "elo", "ply"], ...],
        Help(
            "What makes a stratum: phase (of a game its last), result, mean Elo of the players "
            "(of games with keep_headers), ply (of a game its length)."
        ),
    ] = ("phase", "result")
    shares: Annotated[
        Literal["kept", "equal"],
        Help("'kept' takes each stratum in its proportion, 'equal' as many rows of each."),
    ] = "kept"
    elo_step: Annotated[Positive, Unit("points of rating"), Help("Width of a stratum of Elo.")] = (
        200
    )
    ply_step: Annotated[Plies, Help("Width of a stratum of plies.")] = 20
    seed: Annotated[kinds.Seed, Help("Seed of the draw, 0 to 2**63 - 1.")] = 7


@dataclass(frozen=True)
class CacheConfig(Checked):
    """How a game dataset becomes a splice cache (docs/formats/chess.md#splice-cache)."""

    CODE_VERSION: ClassVar = "2"

    min_context: MinContext = 8
    min_target: MinTarget = 1
    max_samples_per_game: CacheCap = 0
    seed: Seed = 7
    vocabulary: WriteVocabulary = True
    share_games: Annotated[Positive, Unit("games"), NO_EFFECT, Help("Games of a part.")] = 4096
    workers: Workers = 1

    def contract(self) -> dict[str, int]:
        """The four numbers that training compares (docs/formats/chess.md#reading-contract)."""
        return {
            "min_context": self.min_context,
            "min_target": self.min_target,
            "max_samples_per_game": self.max_samples_per_game,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class MonthConfig(_OfPgn, _OfGames):
    """All choices for one month, from which the configs of its builders are made.

    Fields that a builder's config has too mean the same there.

    Raises ValueError as the configs of the builders do.
    """

    cache_cap: CacheCap = 0
    legacy_cap: LegacyCap = 8
    legacy: Annotated[bool, Help("Whether to build the legacy rows.")] = True
    legacy_k: LegacyK = 4
    source_name: Annotated[str, Help("source_file of the rows; empty for the name of the PGN.")] = (
        ""
    )
    keep_headers: KeepHeaders = False
    vocabulary: WriteVocabulary = True
    workers: Workers = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for derived in (self.game, self.validate, self.cache, self.splice):
            derived()

    def _derive(self, kind: type[Config], **named: Any) -> Config:
        """A builder's config from the fields that it has in common, and others by name."""
        names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        common = {f.name: getattr(self, f.name) for f in fields(self) if f.name in names}
        return kind(**{**common, **named})

    def validate(self) -> ValidateConfig:
        """The config of `validate`."""
        names = (self.source_name,) if self.source_name else ()
        return self._derive(ValidateConfig, source_names=names)

    def game(self) -> GameConfig:
        """The config of `build_game_dataset`."""
        return self._derive(GameConfig)

    def cache(self) -> CacheConfig:
        """The config of `build_splice_cache`."""
        return self._derive(CacheConfig, max_samples_per_game=self.cache_cap)

    def splice(self) -> SpliceConfig:
        """The config of `build_splice_dataset`, which `legacy` asks for."""
        return self._derive(SpliceConfig, k=self.legacy_k, max_samples_per_game=self.legacy_cap)


# Where the Lichess elite database is.
URL_TEMPLATE = "https://database.nikonoel.fr/lichess_elite_{month}.zip"
VARIABLE = "GRISTMILL_ELITE_ARCHIVE"
"""The environment variable with the folder of another server."""
COLLECTIONS: Final = "chess_collections"
"""The dynamic partitions of chess: the months of the archive, and a key for each collection."""


@dataclass(frozen=True)
class FetchConfig(Checked):
    """Timeouts and limits of a download (docs/formats/chess.md#download)."""

    timeout: Annotated[float, Gt(0), Help("Seconds for one read.")] = 30.0
    attempts: Annotated[Positive, Help("Attempts in a row without a new byte.")] = 5
    backoff: Annotated[
        float, Ge(0), Help("Seconds to wait after a failure, doubled each time.")
    ] = 1.0
    total_seconds: Annotated[float, Gt(0), Help("Seconds for the whole download.")] = 6 * 3600.0
    max_bytes: Annotated[Positive, Help("Bytes of the archive at most.")] = 16 << 30
    user_agent: Annotated[str, Help("The header User-Agent.")] = "gristmill-archive/1.0"


@dataclass(frozen=True)
class Limits(Checked):
    """How large the PGN of an archive may be (docs/formats/chess.md#zip-rules)."""

    pgn_bytes: Annotated[Positive, Help("Bytes of the PGN at most.")] = 64 << 30
    ratio: Annotated[Positive, Help("Bytes of the PGN for each packed byte at most.")] = 100


_FETCH, _LIMITS = FetchConfig(), Limits()


@dataclass(frozen=True)
class ArchiveConfig(Checked):
    """The address of the archives and the limits for them (docs/formats/chess.md#archive).

    Raises ValueError also for an address without `{month}`.
    """

    # No field counts for the fingerprint: timeouts and limits cannot change the bytes of
    # a good archive, and a month must stay when its server moves (`source.json` has the
    # address it came from).

    CODE_VERSION: ClassVar = "1"

    url_template: Annotated[str, NO_EFFECT, Help("Address of an archive, with {month} in it.")] = (
        URL_TEMPLATE
    )
    fetch: Annotated[FetchConfig, NO_EFFECT, Help("Timeouts and limits of a download.")] = _FETCH
    limits: Annotated[Limits, NO_EFFECT, Help("How large a PGN may be.")] = _LIMITS

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{month}" not in self.url_template:
            raise ValueError(f"url_template must contain {{month}}: {self.url_template!r}")


@dataclass(frozen=True)
class CollectionConfig(Checked):
    """How the files of a collection become PGNs (docs/formats/chess.md#collections)."""

    encoding: Annotated[
        Literal["utf-8", "latin-1", "cp1252"],
        Help("What the PGNs are written in: 'latin-1', and 'cp1252' of Windows, become UTF-8."),
    ] = "utf-8"
    CODE_VERSION: ClassVar[str] = "1"


def archive_config(
    base_address: str = "",
    timeout_seconds: float = _FETCH.timeout,
    attempts: int = _FETCH.attempts,
    backoff_seconds: float = _FETCH.backoff,
) -> ArchiveConfig:
    """The config of a download; each call reads the variable."""
    folder, _, name = URL_TEMPLATE.rpartition("/")
    base = base_address or os.environ.get(VARIABLE) or folder
    fetch = FetchConfig(timeout=timeout_seconds, attempts=attempts, backoff=backoff_seconds)
    return ArchiveConfig(url_template=f"{base.rstrip('/')}/{name}", fetch=fetch)

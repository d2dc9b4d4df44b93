"""The configs of the chess family: one for a month, and one for each builder.

`MonthConfig` makes the configs of all builders from one set of choices, so that a
dataset and its cache cannot differ. The metadata of a field has a `help` text, and
`choices` where the values are a fixed set, and the bounds and the unit of a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

from gristmill.chess.format import config_help
from gristmill.chess.format.config_help import added_later, choice
from gristmill.settings.fields import MOST_WORKERS, check_fields

Compat = Literal["current", "reference"]
Split = Literal["moves", "opening", "shuffle"]
Games = Literal["decisive", "finished", "all"]
COMPATS = ("current", "reference")
SPLIT_RULES = ("moves", "opening", "shuffle")
# The winners that each kind of `games` takes; "" for any.
WINNERS_OF: Mapping[str, str] = {"decisive": "WB", "finished": "WBD", "all": ""}
# The splits of every dataset, in order.
SPLITS = ("train", "val", "test")
# Fields that a game dataset gives its cache, since both must have them alike.
SHARED = ("min_context", "min_target", "seed")
# The time classes of Lichess (docs/formats/chess.md#filters).
TIME_CLASSES = ("ultrabullet", "bullet", "blitz", "rapid", "classical", "correspondence")

Config = TypeVar("Config")


class _Unstated(str):
    """A default, which is not taken for an equal value that somebody stated."""

    __slots__ = ()


_GAMES = _Unstated("decisive")
# What `games` is called in older configs. Fingerprints have the value of each kind.
_ALLOW_DRAWS: Mapping[str, bool | None] = {"decisive": False, "finished": True, "all": None}


def number(default: float, text: str, *, unit: str, **rest: float) -> Any:
    """A field for a number, with its help text, its unit, bounds, and `affects_output`."""
    return field(default=default, metadata={"help": text, "unit": unit, **rest})


def always(default: str, text: str, choices: tuple[str, ...]) -> Any:
    """A field of choices that events always show, with its help text."""
    return field(default=default, metadata={"help": text, "choices": choices, "in_event": True})


def _check_ratios(train_ratio: float, val_ratio: float) -> None:
    if train_ratio + val_ratio > 1:
        raise ValueError(f"train_ratio {train_ratio} and val_ratio {val_ratio} must sum to 0 .. 1")


def _settle_games(config: GameConfig | SpliceConfig | MonthConfig) -> None:
    """Let `allow_draws` and `games` say the same. Raises ValueError where they do not."""
    stated = None if isinstance(config.games, _Unstated) else str(config.games)
    older = {True: "finished", False: "decisive", None: stated or str(_GAMES)}[config.allow_draws]
    if stated not in (None, older):
        draws = str(config.allow_draws).lower()
        raise ValueError(
            f'games = "{stated}" and allow_draws = {draws}, which means games = "{older}", '
            "disagree: leave allow_draws out"
        )
    # The configs are frozen.
    object.__setattr__(config, "games", older)
    object.__setattr__(config, "allow_draws", _ALLOW_DRAWS[older])


@dataclass(frozen=True)
class ValidateConfig:
    """How PGN becomes valid games (docs/formats/chess.md#validation).

    compat: `current` (the default), or `reference` for the files of the original code.
    min_plies: games with fewer plies are `too_short`; 8 by default.
    elo_floor: games with a rating below this are `below_elo`; 0 (the default) is off.
    time_controls: names of TIME_CLASSES to keep; empty (the default) keeps all.
    drop_abandoned: games whose Termination is not a normal end are `abandoned`; False by
        default.
    drop_bots: games in which a player has the title BOT are `bot_player`; False by default.
    source_names: one `source_file` for each PGN; empty (the default) takes the file's
        name, in `reference` the path as passed.
    share_bytes: bytes of a byte range of PGN, about; 2 MiB by default.
    workers: processes; 1 by default.

    Raises ValueError for a value of another type, an unknown word or a number out of its range.
    """

    CODE_VERSION: ClassVar = "6"

    compat: Compat = always("current", config_help.COMPAT, COMPATS)
    min_plies: int = number(8, config_help.MIN_PLIES, least=0, unit="plies")
    elo_floor: int = number(0, config_help.ELO_FLOOR, least=0, unit="points of rating")
    time_controls: tuple[str, ...] = choice((), config_help.TIME_CONTROLS, TIME_CLASSES)
    drop_abandoned: bool = choice(False, config_help.DROP_ABANDONED)
    drop_bots: bool = added_later(False, config_help.DROP_BOTS)
    source_names: tuple[str, ...] = choice((), "One source_file for each PGN; empty for its name.")
    share_bytes: int = number(
        2 << 20, "Size of a byte range of PGN, about.", least=1, unit="bytes", affects_output=False
    )
    workers: int = number(
        1, config_help.WORKERS, least=0, most=MOST_WORKERS, unit="processes", affects_output=False
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class GameConfig:
    """How valid games become a game dataset (docs/formats/chess.md#game-dataset).

    min_context: plies of a sample's context at least; 8 by default.
    min_target: plies after it at least; 1 by default.
    seed: seed of the split; 7 by default.
    train_ratio: fraction of the games in train; 0.8 by default.
    val_ratio: fraction of the games in val; 0.1 by default.
    split: `moves` (the default, docs/formats/chess.md#split-by-moves), `opening`
        (docs/formats/chess.md#split-by-opening), or `shuffle`
        (docs/formats/chess.md#split-by-shuffle).
    opening_plies: plies that are the opening, for `split="opening"`; 1 to 200, 16 by default.
    games: which ends of games are taken (docs/formats/chess.md#eligibility): `decisive` (the
        default), `finished` or `all`.
    allow_draws: the older name: True is `games="finished"`, False `games="decisive"`; None (the
        default) leaves it to `games`.
    keep_headers: write the tags into the rows; False by default.
    allow_live_bot_games: accept games of a live bot; False by default.
    drop_duplicates: take rows with an equal game_id once; False by default.
    share_bytes: bytes of a byte range of rows, about; 4 MiB by default.
    workers: processes; 1 by default.

    Raises ValueError for a value of another type, an unknown word or a number out of its range.
    """

    CODE_VERSION: ClassVar = "2"

    min_context: int = number(8, config_help.MIN_CONTEXT, least=1, unit="plies")
    min_target: int = number(1, config_help.MIN_TARGET, least=1, unit="plies")
    seed: int = number(7, config_help.SEED, least=0, unit="none, any number")
    train_ratio: float = number(
        0.8, config_help.TRAIN_RATIO, least=0, most=1, unit="fraction of the games"
    )
    val_ratio: float = number(
        0.1, config_help.VAL_RATIO, least=0, most=1, unit="fraction of the games"
    )
    split: Split = always("moves", config_help.SPLIT, SPLIT_RULES)
    opening_plies: int = number(
        16, config_help.OPENING_PLIES, least=1, most=200, unit="plies", added_later=True
    )
    games: Games = added_later(_GAMES, config_help.GAMES)
    allow_draws: bool | None = choice(None, config_help.ALLOW_DRAWS)
    keep_headers: bool = choice(False, config_help.KEEP_HEADERS)
    allow_live_bot_games: bool = choice(False, config_help.ALLOW_BOTS)
    drop_duplicates: bool = added_later(False, config_help.DROP_DUPLICATES)
    share_bytes: int = number(
        4 << 20, "Size of a byte range of rows, about.", least=1, unit="bytes", affects_output=False
    )
    workers: int = number(
        1, config_help.WORKERS, least=0, most=MOST_WORKERS, unit="processes", affects_output=False
    )

    def __post_init__(self) -> None:
        check_fields(self)
        _settle_games(self)
        _check_ratios(self.train_ratio, self.val_ratio)


@dataclass(frozen=True)
class SpliceConfig:
    """How valid games become legacy rows (docs/formats/chess.md#legacy-rows).

    k: plies of the target at most; 4 by default.
    min_context: plies of the context at least; 8 by default.
    min_target: plies of the target at least; 1 by default.
    max_samples_per_game: rows of a game at most; 0 (the default) for all.
    seed: seed of the split and the cap; 7 by default.
    train_ratio: fraction of the games in train; 0.8 by default.
    val_ratio: fraction of the games in val; 0.1 by default.
    split: `moves` (the default), `opening` or `shuffle`, as in GameConfig.
    opening_plies: plies that are the opening, for `split="opening"`; 1 to 200, 16 by default.
    games: which ends of games are taken (docs/formats/chess.md#eligibility): `decisive` (the
        default), `finished` or `all`.
    allow_draws: the older name: True is `games="finished"`, False `games="decisive"`; None (the
        default) leaves it to `games`.
    allow_live_bot_games: accept games of a live bot; False by default.
    drop_duplicates: take rows with an equal game_id once; False by default.
    share_bytes: bytes of a byte range of rows, about; 1 MiB by default.
    workers: processes; 1 by default.

    Raises ValueError for a value of another type, an unknown word or a number out of its range.
    """

    CODE_VERSION: ClassVar = "1"

    k: int = number(4, config_help.LEGACY_K, least=1, unit="plies")
    min_context: int = number(8, config_help.MIN_CONTEXT, least=1, unit="plies")
    min_target: int = number(1, config_help.MIN_TARGET, least=1, unit="plies")
    max_samples_per_game: int = number(0, config_help.LEGACY_CAP, least=0, unit="rows")
    seed: int = number(7, config_help.SEED, least=0, unit="none, any number")
    train_ratio: float = number(
        0.8, config_help.TRAIN_RATIO, least=0, most=1, unit="fraction of the games"
    )
    val_ratio: float = number(
        0.1, config_help.VAL_RATIO, least=0, most=1, unit="fraction of the games"
    )
    split: Split = always("moves", config_help.SPLIT, SPLIT_RULES)
    opening_plies: int = number(
        16, config_help.OPENING_PLIES, least=1, most=200, unit="plies", added_later=True
    )
    games: Games = added_later(_GAMES, config_help.GAMES)
    allow_draws: bool | None = choice(None, config_help.ALLOW_DRAWS)
    allow_live_bot_games: bool = choice(False, config_help.ALLOW_BOTS)
    drop_duplicates: bool = added_later(False, config_help.DROP_DUPLICATES)
    share_bytes: int = number(
        1 << 20, "Size of a byte range of rows, about.", least=1, unit="bytes", affects_output=False
    )
    workers: int = number(
        1, config_help.WORKERS, least=0, most=MOST_WORKERS, unit="processes", affects_output=False
    )

    def __post_init__(self) -> None:
        check_fields(self)
        _settle_games(self)
        _check_ratios(self.train_ratio, self.val_ratio)
        if self.k < self.min_target:
            raise ValueError(f"k ({self.k}) must not be less than min_target ({self.min_target})")


@dataclass(frozen=True)
class CacheConfig:
    """How a game dataset becomes a splice cache (docs/formats/chess.md#splice-cache).

    min_context: plies of a sample's context at least; 8 by default.
    min_target: plies after it at least; 1 by default.
    max_samples_per_game: samples of a game at most; 0 (the default) for all.
    seed: seed of the cap; 7 by default.
    vocabulary: write the vocabulary of the train games; True by default.
    share_games: games of a part; 4096 by default.
    workers: processes; 1 by default.

    Raises ValueError for a value of another type or a number out of its range.
    """

    CODE_VERSION: ClassVar = "1"

    min_context: int = number(8, config_help.MIN_CONTEXT, least=1, unit="plies")
    min_target: int = number(1, config_help.MIN_TARGET, least=1, unit="plies")
    max_samples_per_game: int = number(0, config_help.CACHE_CAP, least=0, unit="samples")
    seed: int = number(7, config_help.SEED, least=0, unit="none, any number")
    vocabulary: bool = choice(True, config_help.VOCABULARY)
    share_games: int = number(4096, "Games of a part.", least=1, unit="games", affects_output=False)
    workers: int = number(
        1, config_help.WORKERS, least=0, most=MOST_WORKERS, unit="processes", affects_output=False
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def contract(self) -> dict[str, int]:
        """The four numbers that training compares (docs/formats/chess.md#reading-contract)."""
        return {
            "min_context": self.min_context,
            "min_target": self.min_target,
            "max_samples_per_game": self.max_samples_per_game,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class MonthConfig:
    """All choices for one month, from which the configs of its builders are made.

    Fields that a builder's config has too mean the same there.

    cache_cap: `max_samples_per_game` of the cache; 0 (the default) for all.
    legacy_cap: `max_samples_per_game` of the legacy rows; 8 by default.
    legacy: build the legacy rows; True by default.
    legacy_k: `k` of the legacy rows; 4 by default.
    source_name: `source_file` of the rows; empty (the default) for the name of the PGN.

    Raises ValueError as the configs of the builders do.
    """

    min_context: int = number(8, config_help.MIN_CONTEXT, least=1, unit="plies")
    min_target: int = number(1, config_help.MIN_TARGET, least=1, unit="plies")
    seed: int = number(7, config_help.SEED, least=0, unit="none, any number")
    cache_cap: int = number(0, config_help.CACHE_CAP, least=0, unit="samples")
    legacy_cap: int = number(8, config_help.LEGACY_CAP, least=0, unit="rows")
    legacy: bool = choice(True, "Whether to build the legacy rows.")
    legacy_k: int = number(4, config_help.LEGACY_K, least=1, unit="plies")
    compat: Compat = always("current", config_help.COMPAT, COMPATS)
    min_plies: int = number(8, config_help.MIN_PLIES, least=0, unit="plies")
    elo_floor: int = number(0, config_help.ELO_FLOOR, least=0, unit="points of rating")
    time_controls: tuple[str, ...] = choice((), config_help.TIME_CONTROLS, TIME_CLASSES)
    drop_abandoned: bool = choice(False, config_help.DROP_ABANDONED)
    drop_bots: bool = added_later(False, config_help.DROP_BOTS)
    source_name: str = choice("", "source_file of the rows; empty for the name of the PGN.")
    train_ratio: float = number(
        0.8, config_help.TRAIN_RATIO, least=0, most=1, unit="fraction of the games"
    )
    val_ratio: float = number(
        0.1, config_help.VAL_RATIO, least=0, most=1, unit="fraction of the games"
    )
    split: Split = always("moves", config_help.SPLIT, SPLIT_RULES)
    opening_plies: int = number(
        16, config_help.OPENING_PLIES, least=1, most=200, unit="plies", added_later=True
    )
    games: Games = added_later(_GAMES, config_help.GAMES)
    allow_draws: bool | None = choice(None, config_help.ALLOW_DRAWS)
    keep_headers: bool = choice(False, config_help.KEEP_HEADERS)
    allow_live_bot_games: bool = choice(False, config_help.ALLOW_BOTS)
    drop_duplicates: bool = added_later(False, config_help.DROP_DUPLICATES)
    vocabulary: bool = choice(True, config_help.VOCABULARY)
    workers: int = number(
        1, config_help.WORKERS, least=0, most=MOST_WORKERS, unit="processes", affects_output=False
    )

    def __post_init__(self) -> None:
        check_fields(self)
        _settle_games(self)
        self.validate()
        self.game()
        self.cache()
        self.splice()

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

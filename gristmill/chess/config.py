"""What can be chosen in the chess family: one config for a month, and those that derive from it.

Each builder takes its own small frozen config; `MonthConfig` makes them all
from one set of choices, so that a dataset and its cache cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

Compat = Literal["current", "reference"]
Split = Literal["moves", "shuffle"]
SPLITS = ("train", "val", "test")
TIME_CLASSES = ("ultrabullet", "bullet", "blitz", "rapid", "classical", "correspondence")

URL_TEMPLATE = "https://database.nikonoel.fr/lichess_elite_{month}.zip"

Config = TypeVar("Config")


@dataclass(frozen=True)
class FetchConfig:
    """Patience and bounds. Seconds and bytes.

    attempts: how many may fail in a row without a new byte. backoff: wait after
    the first failure, doubled each time, at most a minute.
    """

    timeout: float = 30.0
    attempts: int = 5
    backoff: float = 1.0
    total_seconds: float = 6 * 3600.0
    max_bytes: int = 16 << 30
    user_agent: str = "gristmill-archive/1.0"

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.max_bytes < 1:
            raise ValueError("attempts, timeout and max_bytes must be positive")


@dataclass(frozen=True)
class Limits:
    """How much a file may unpack to: bytes, and times its packed size."""

    pgn_bytes: int = 64 << 30
    ratio: int = 100


@dataclass(frozen=True)
class ArchiveConfig:
    """Where archives come from, and how much is believed of them.

    url_template: with `{month}` in it. No field counts for the fingerprint: the
    others cannot change a good archive's bytes, and a month that was taken stays
    when its server moves (`source.json` keeps the address it came from).
    """

    CODE_VERSION: ClassVar = "1"

    url_template: str = field(default=URL_TEMPLATE, metadata={"affects_output": False})
    fetch: FetchConfig = field(default=FetchConfig(), metadata={"affects_output": False})
    limits: Limits = field(default=Limits(), metadata={"affects_output": False})

    def __post_init__(self) -> None:
        if "{month}" not in self.url_template:
            raise ValueError(f"url_template must contain {{month}}: {self.url_template!r}")


def _check_splices(min_context: int, min_target: int, seed: int, cap: int) -> None:
    if min_context < 1:
        raise ValueError(f"min_context must be at least 1 ply, not {min_context}")
    if min_target < 1:
        raise ValueError(f"min_target must be at least 1 ply, not {min_target}")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must lie in 0 .. 2**63 - 1, not {seed}")
    if cap < 0:
        raise ValueError(f"a cap of samples per game must be 0 (none) or more, not {cap}")


def _check_split(train_ratio: float, val_ratio: float, split: str) -> None:
    if not (0 <= train_ratio <= 1 and 0 <= val_ratio <= 1 and train_ratio + val_ratio <= 1):
        raise ValueError(f"train_ratio {train_ratio} and val_ratio {val_ratio} must sum to 0 .. 1")
    if split not in ("moves", "shuffle"):
        raise ValueError(f"split must be 'moves' or 'shuffle', not {split!r}")


@dataclass(frozen=True)
class ValidateConfig:
    """How PGN becomes validated games (docs/formats/chess.md#validation).

    compat: "reference" reproduces the ids and verdicts of the earlier
        implementation (ids with the path in them, claimable draws rejected,
        FEN, variant and null-move games kept). "current" is the default.
    min_plies: shorter games are `too_short`.
    elo_floor: 0, or games below it on either side (or without a rating) are `below_elo`.
    time_controls: classes of TIME_CLASSES to keep; empty keeps all.
    drop_abandoned: games whose Termination is not a normal end (Normal, Time forfeit,
        or none told) are `abandoned`; so those that are Unterminated too.
    source_names: the names written as `source_file`, one a path; by default the
        file's name, in "reference" the path as passed.
    share_bytes: PGN bytes of one part of the work.
    """

    CODE_VERSION: ClassVar = "3"

    compat: Compat = "current"
    min_plies: int = 8
    elo_floor: int = 0
    time_controls: tuple[str, ...] = ()
    drop_abandoned: bool = False
    source_names: tuple[str, ...] = ()
    share_bytes: int = field(default=2 << 20, metadata={"affects_output": False})
    workers: int = field(default=1, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        if self.compat not in ("current", "reference"):
            raise ValueError(f"compat must be 'current' or 'reference', not {self.compat!r}")
        if self.min_plies < 0 or self.elo_floor < 0 or self.share_bytes < 1:
            raise ValueError("min_plies and elo_floor must be 0 or more, share_bytes positive")
        if unknown := set(self.time_controls) - set(TIME_CLASSES):
            raise ValueError(f"unknown time controls {sorted(unknown)}; choose of {TIME_CLASSES}")


@dataclass(frozen=True)
class GameConfig:
    """How validated games become a game dataset (docs/formats/chess.md#game-dataset).

    split: "moves" places a game by a stable hash of its moves and the seed;
        "shuffle" is the seeded shuffle of ids
        (docs/formats/chess.md#split-by-shuffle).
    allow_draws: keep games without a winner.
    """

    CODE_VERSION: ClassVar = "2"

    min_context: int = 8
    min_target: int = 1
    seed: int = 7
    train_ratio: float = 0.8
    val_ratio: float = 0.1
    split: Split = "moves"
    allow_draws: bool = False
    keep_headers: bool = False
    allow_live_bot_games: bool = False
    share_bytes: int = field(default=4 << 20, metadata={"affects_output": False})
    workers: int = field(default=1, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        _check_splices(self.min_context, self.min_target, self.seed, 0)
        _check_split(self.train_ratio, self.val_ratio, self.split)


@dataclass(frozen=True)
class SpliceConfig:
    """How validated games become legacy sample rows (docs/formats/chess.md#legacy-rows).

    k: plies of the target at most. max_samples_per_game: 0 for all.
    """

    CODE_VERSION: ClassVar = "1"

    k: int = 4
    min_context: int = 8
    min_target: int = 1
    max_samples_per_game: int = 0
    seed: int = 7
    train_ratio: float = 0.8
    val_ratio: float = 0.1
    split: Split = "moves"
    allow_draws: bool = False
    allow_live_bot_games: bool = False
    share_bytes: int = field(default=1 << 20, metadata={"affects_output": False})
    workers: int = field(default=1, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        _check_splices(self.min_context, self.min_target, self.seed, self.max_samples_per_game)
        _check_split(self.train_ratio, self.val_ratio, self.split)
        if self.k < self.min_target:
            raise ValueError(f"k ({self.k}) must not be less than min_target ({self.min_target})")


@dataclass(frozen=True)
class CacheConfig:
    """How a game dataset becomes a runtime splice cache (docs/formats/chess.md#splice-cache)."""

    CODE_VERSION: ClassVar = "1"

    min_context: int = 8
    min_target: int = 1
    max_samples_per_game: int = 0
    seed: int = 7
    vocabulary: bool = True
    share_games: int = field(default=4096, metadata={"affects_output": False})
    workers: int = field(default=1, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        _check_splices(self.min_context, self.min_target, self.seed, self.max_samples_per_game)

    def contract(self) -> dict[str, int]:
        """The four numbers that training compares before it takes a cache."""
        return {
            "min_context": self.min_context,
            "min_target": self.min_target,
            "max_samples_per_game": self.max_samples_per_game,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class MonthConfig:
    """All choices for one month; `validate`, `game`, `cache` and `splice` give the parts.

    source_name: written as `source_file`; empty for the name of the month's PGN.
    """

    min_context: int = 8
    min_target: int = 1
    seed: int = 7
    cache_cap: int = 0
    legacy_cap: int = 8
    legacy: bool = True
    legacy_k: int = 4
    compat: Compat = "current"
    min_plies: int = 8
    elo_floor: int = 0
    time_controls: tuple[str, ...] = ()
    drop_abandoned: bool = False
    source_name: str = ""
    train_ratio: float = 0.8
    val_ratio: float = 0.1
    split: Split = "moves"
    allow_draws: bool = False
    keep_headers: bool = False
    allow_live_bot_games: bool = False
    vocabulary: bool = True
    workers: int = field(default=1, metadata={"affects_output": False})

    def __post_init__(self) -> None:
        self.validate()
        self.game()
        self.cache()
        self.splice()

    def _derive(self, kind: type[Config], **named: Any) -> Config:
        known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
        shared = {f.name: getattr(self, f.name) for f in fields(self) if f.name in known}
        return kind(**{**shared, **named})

    def validate(self) -> ValidateConfig:
        """The config of `gristmill.chess.validate`."""
        names = (self.source_name,) if self.source_name else ()
        return self._derive(ValidateConfig, source_names=names)

    def game(self) -> GameConfig:
        """The config of `build_game_dataset`."""
        return self._derive(GameConfig)

    def cache(self) -> CacheConfig:
        """The config of `build_splice_cache`."""
        return self._derive(CacheConfig, max_samples_per_game=self.cache_cap)

    def splice(self) -> SpliceConfig:
        """The config of `build_splice_dataset` (built where `legacy` is set)."""
        return self._derive(SpliceConfig, k=self.legacy_k, max_samples_per_game=self.legacy_cap)

"""Chess: elite months to valid games, game datasets, legacy rows and splice caches.

A public name is imported when it is first used. Source: `docs/chess.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.chess.builders.game_dataset import GameSummary, build_game_dataset
    from gristmill.chess.builders.splice_cache import CacheSummary, build_splice_cache
    from gristmill.chess.builders.splice_dataset import SpliceSummary, build_splice_dataset
    from gristmill.chess.builders.validate import ValidateSummary, validate
    from gristmill.chess.config import (
        CacheConfig,
        GameConfig,
        MonthConfig,
        SpliceConfig,
        ValidateConfig,
    )
    from gristmill.chess.raw.archive import ArchiveSummary, fetch_month, take_drop
    from gristmill.chess.raw.archive_config import ArchiveConfig, FetchConfig
    from gristmill.chess.raw.download import DownloadError, NotPublished
    from gristmill.chess.raw.months import check_month, due_months, parse_month_list
    from gristmill.chess.read.collate import collate
    from gristmill.chess.read.dataset import GameSpliceDataset, StaleCache, StaleDataset
    from gristmill.chess.read.trace import Trace, trace

__all__ = [
    "ArchiveConfig",
    "ArchiveSummary",
    "CacheConfig",
    "CacheSummary",
    "DownloadError",
    "FetchConfig",
    "GameConfig",
    "GameSpliceDataset",
    "GameSummary",
    "MonthConfig",
    "NotPublished",
    "SpliceConfig",
    "SpliceSummary",
    "StaleCache",
    "StaleDataset",
    "Trace",
    "ValidateConfig",
    "ValidateSummary",
    "build_game_dataset",
    "build_splice_cache",
    "build_splice_dataset",
    "check_month",
    "collate",
    "due_months",
    "fetch_month",
    "parse_month_list",
    "take_drop",
    "trace",
    "validate",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "raw.archive_config": (
            "ArchiveConfig",
            "FetchConfig",
        ),
        "builders.game_dataset": (
            "GameSummary",
            "build_game_dataset",
        ),
        "builders.splice_cache": (
            "CacheSummary",
            "build_splice_cache",
        ),
        "builders.splice_dataset": (
            "SpliceSummary",
            "build_splice_dataset",
        ),
        "builders.validate": (
            "ValidateSummary",
            "validate",
        ),
        "config": (
            "CacheConfig",
            "GameConfig",
            "MonthConfig",
            "SpliceConfig",
            "ValidateConfig",
        ),
        "raw.archive": (
            "ArchiveSummary",
            "fetch_month",
            "take_drop",
        ),
        "raw.download": (
            "DownloadError",
            "NotPublished",
        ),
        "raw.months": (
            "check_month",
            "due_months",
            "parse_month_list",
        ),
        "read.collate": ("collate",),
        "read.dataset": (
            "GameSpliceDataset",
            "StaleCache",
            "StaleDataset",
        ),
        "read.trace": (
            "Trace",
            "trace",
        ),
    },
)

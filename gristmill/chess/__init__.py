"""Chess: elite months to validated games, game datasets, splices and runtime caches.

The public names are loaded when first used, so that importing the package stays
cheap. Formats and rules: seed 004, spec `chess.md`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.chess.archive import ArchiveSummary, fetch_month, take_drop
    from gristmill.chess.config import (
        ArchiveConfig,
        CacheConfig,
        FetchConfig,
        GameConfig,
        MonthConfig,
        SpliceConfig,
        ValidateConfig,
    )
    from gristmill.chess.fetch import DownloadError, NotPublished
    from gristmill.chess.game_dataset import GameSummary, build_game_dataset
    from gristmill.chess.months import check_month, due_months, parse_month_list
    from gristmill.chess.reader import GameSpliceDataset, StaleCache
    from gristmill.chess.splice_cache import CacheSummary, build_splice_cache
    from gristmill.chess.splice_dataset import SpliceSummary, build_splice_dataset
    from gristmill.chess.tracing import Trace, trace
    from gristmill.chess.validation import ValidateSummary, validate

_PLACES = {
    "archive": ("ArchiveSummary", "fetch_month", "take_drop"),
    "config": (
        "ArchiveConfig",
        "CacheConfig",
        "FetchConfig",
        "GameConfig",
        "MonthConfig",
        "SpliceConfig",
        "ValidateConfig",
    ),
    "fetch": ("DownloadError", "NotPublished"),
    "game_dataset": ("GameSummary", "build_game_dataset"),
    "months": ("check_month", "due_months", "parse_month_list"),
    "reader": ("GameSpliceDataset", "StaleCache"),
    "splice_cache": ("CacheSummary", "build_splice_cache"),
    "splice_dataset": ("SpliceSummary", "build_splice_dataset"),
    "tracing": ("Trace", "trace"),
    "validation": ("ValidateSummary", "validate"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

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
    "Trace",
    "ValidateConfig",
    "ValidateSummary",
    "build_game_dataset",
    "build_splice_cache",
    "build_splice_dataset",
    "check_month",
    "due_months",
    "fetch_month",
    "parse_month_list",
    "take_drop",
    "trace",
    "validate",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)

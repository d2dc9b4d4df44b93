"""Chess: elite months to valid games, game datasets, legacy rows and splice caches.

A public name is imported when it is first used. Source: `docs/chess.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.chess.builders.datasets import (
        CacheSummary,
        GameSummary,
        SpliceSummary,
        build_game_dataset,
        build_splice_cache,
        build_splice_dataset,
    )
    from gristmill.chess.builders.validate import ValidateSummary, validate
    from gristmill.chess.config import (
        ArchiveConfig,
        CacheConfig,
        FetchConfig,
        GameConfig,
        MonthConfig,
        SpliceConfig,
        ValidateConfig,
    )
    from gristmill.chess.raw.download import (
        ArchiveSummary,
        DownloadError,
        NotPublished,
        fetch_month,
        take_drop,
    )
    from gristmill.chess.raw.pgn_text import check_month, due_months, parse_month_list
    from gristmill.chess.read.dataset import GameSpliceDataset, StaleCache, StaleDataset
    from gristmill.chess.read.samples import collate
    from gristmill.chess.read.trace import Trace, trace

__all__, __getattr__ = lazy_exports(__name__)

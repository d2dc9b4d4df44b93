"""The samples that months were built for: the config that their files record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gristmill.chess.config import CacheConfig
from gristmill.chess.format.names import CACHE_FOLDER, CACHE_MANIFEST, STATS
from gristmill.chess.read.staleness import read_manifest, stale
from gristmill.contract import BadInput


def _of_cache(cache: Path) -> CacheConfig:
    try:
        recorded: Mapping[str, Any] = read_manifest(cache)["config"]
        return CacheConfig(
            min_context=int(recorded["min_context"]),
            min_target=int(recorded["min_target"]),
            max_samples_per_game=int(recorded["max_samples_per_game"]),
            seed=int(recorded["seed"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error


def _of_stats(stats: Path) -> CacheConfig:
    try:
        recorded = json.loads(stats.read_bytes())
        defaults = recorded["runtime_splice_defaults"]
        return CacheConfig(
            min_context=int(defaults["min_context"]),
            min_target=int(defaults["min_target"]),
            seed=int(recorded["split_seed"]),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BadInput(
            stats, f"does not say which samples the dataset is for ({error!r}); pass a config"
        ) from error


def _config_of(dataset: Path) -> CacheConfig:
    """The config of the dataset's cache, else the defaults of its `stats.json`."""
    cache = dataset / CACHE_FOLDER
    if (cache / CACHE_MANIFEST).exists():
        return _of_cache(cache)
    return _of_stats(dataset / STATS)


def config_of(datasets: Sequence[Path]) -> CacheConfig:
    """The config that these months have in common; the default config for no month.

    Raises BadInput where months differ or do not record a config, StaleCache for a damaged cache.
    """
    first: tuple[Path, CacheConfig] | None = None
    for dataset in datasets:
        config = _config_of(dataset)
        if first is None:
            first = (dataset, config)
            continue
        expected, recorded = first[1].contract(), config.contract()
        if not config.max_samples_per_game:
            # Without a cap nothing is drawn, so the seed has no effect.
            expected["seed"] = recorded["seed"]
        if expected != recorded:
            raise BadInput(
                dataset,
                f"is for samples of {config.contract()}, {first[0]} of {first[1].contract()}; "
                "pass the config that is wanted for all",
            )
    return first[1] if first else CacheConfig()

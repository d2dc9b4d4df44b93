"""Staleness checks: was this cache or sidecar built from the rows next to it? Raises StaleCache.

See also `dataset.py`: the samples that a month was built for. The laws check
whole folders.

Source: `docs/formats/chess.md#staleness-checks`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.cache_arrays import LAYOUT
from gristmill.chess.format.names import CACHE_MANIFEST, split_file
from gristmill.contract import GristmillError


class StaleCache(GristmillError):
    """A splice cache or a sidecar was not built from the rows next to it."""


def stale(cache: Path, why: str) -> StaleCache:
    """The error for a cache that must be built again.

    cache: folder of the cache.
    why: what is wrong with it.
    """
    return StaleCache(f"{cache}: {why}; build the cache of this dataset again")


def _changed(jsonl: Path, size: int, sha256: str, current: str | None) -> bool:
    """Whether a file has another size or, where its sha256 is known, other bytes than recorded."""
    return jsonl.stat().st_size != size or current not in (None, sha256)


def read_manifest(cache: Path) -> dict[str, Any]:
    """The manifest of a splice cache (docs/formats/chess.md#manifest).

    cache: folder of the cache.

    Raises StaleCache where it cannot be read or is of another kind.
    """
    try:
        manifest = json.loads((cache / CACHE_MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != rows.CACHE_KIND:
        raise stale(cache, f"its manifest is not of kind {rows.CACHE_KIND!r}")
    return manifest


def check_cache(
    cache: Path, dataset: Path, split: str, config: CacheConfig, sha256: str | None
) -> str:
    """Check that a cache was built from this dataset's rows, and for which config.

    sha256: of the rows; None to compare only their size.

    Returns an empty text if the cache can be used, or how its config differs.
    Raises StaleCache where the cache is damaged or its rows have changed.
    """
    manifest = read_manifest(cache)
    try:
        entry = manifest["splits"][split]
        recorded = dict(entry.get("config", manifest["config"]))
        samples = int(entry["sample_rows_total"])
        source = entry.get("source")
        expected = source and (int(source["size_bytes"]), str(source["sha256"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise stale(cache, f"its manifest cannot be read ({error!r})") from error
    for name, dtype in LAYOUT.items():
        path = cache / split / name
        if not path.exists() or path.stat().st_size != samples * np.dtype(dtype).itemsize:
            raise stale(cache, f"{split}/{name} does not have the manifest's {samples} samples")
    if not expected:
        raise stale(cache, "its manifest does not name the rows that it was built from")
    if _changed(split_file(dataset, split), *expected, sha256):
        raise stale(cache, f"{split}.jsonl has changed since the cache was built")
    wanted = config.contract()
    if not config.max_samples_per_game and not recorded.get("max_samples_per_game"):
        # Without a cap nothing is drawn, so the seed has no effect.
        wanted["seed"] = recorded.get("seed", 0)
    return "" if recorded == wanted else f"its config is {recorded}, wanted {wanted}"


def check_sidecar(dataset: Path, split: str, sha256: str | None) -> None:
    """Check that a sidecar was built from this split's rows; a dataset without one is right.

    sha256: of the rows; None to compare only their size.

    Raises StaleCache where the rows have changed or are not named.
    """
    # The reader takes offsets and phases from the sidecar without parsing the rows,
    # so a changed row would give samples of no game.
    if sidecar.Sidecar.open(dataset, split) is None:
        return
    jsonl = split_file(dataset, split)
    remedy = f"build the dataset again, or remove {sidecar.FOLDER}/ to have the games replayed"
    try:
        entry = sidecar.read_rows(dataset)[split]
        expected = (int(entry["bytes"]), str(entry["sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        where = sidecar.rows_file(dataset)
        raise StaleCache(
            f"{where}: does not name the rows of {split} ({error!r}); {remedy}"
        ) from error
    if _changed(jsonl, *expected, sha256):
        raise StaleCache(f"{jsonl}: has changed since its sidecar was written; {remedy}")

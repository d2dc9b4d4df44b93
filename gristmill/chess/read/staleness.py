"""Whether a cache or a sidecar is of the rows it lies beside, and which samples a month is for.

Asked by the reader before it uses either; what must hold of a whole folder is
the laws'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.chess.config import CacheConfig
from gristmill.chess.format import rows, sidecar
from gristmill.chess.format.names import CACHE_FOLDER, CACHE_MANIFEST, STATS
from gristmill.chess.read.samples import LAYOUT
from gristmill.contract import BadInput, GristmillError
from gristmill.hashing import sha256_file


class StaleCache(GristmillError):
    """A runtime splice cache or a sidecar that is not of the rows that it stands beside."""


def _stale(cache: Path, why: str) -> StaleCache:
    return StaleCache(f"{cache}: {why}; build the cache of this dataset again")


def _changed(jsonl: Path, size: int, sha256: str, hashed: bool) -> bool:
    """Whether a file has another size, or (hashed) other bytes, than was noted."""
    return jsonl.stat().st_size != size or (hashed and sha256_file(jsonl) != sha256)


def _manifest(cache: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((cache / CACHE_MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise _stale(cache, f"its manifest cannot be read ({error!r})") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != rows.CACHE_KIND:
        raise _stale(cache, f"its manifest is not of kind {rows.CACHE_KIND!r}")
    return manifest


def check_cache(cache: Path, dataset: Path, split: str, config: CacheConfig, hashed: bool) -> str:
    """Why the cache may not be used: a text if its config is another, else empty.

    hashed: compare the sha256 of the rows too, not their size alone. Raises
    StaleCache if the cache is not of this dataset, or broken.
    """
    manifest, jsonl = _manifest(cache), dataset / f"{split}.jsonl"
    try:
        entry = manifest["splits"][split]
        found = dict(entry.get("config", manifest["config"]))
        samples = int(entry["sample_rows_total"])
        source = entry.get("source")
        told = source and (int(source["size_bytes"]), str(source["sha256"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _stale(cache, f"its manifest cannot be read ({error!r})") from error
    for name, dtype in LAYOUT.items():
        path = cache / split / name
        if not path.exists() or path.stat().st_size != samples * np.dtype(dtype).itemsize:
            raise _stale(cache, f"{split}/{name} has not the manifest's {samples} samples")
    if not told:
        raise _stale(cache, "its manifest does not say which rows it is of")
    if _changed(jsonl, *told, hashed):
        raise _stale(cache, f"{split}.jsonl has changed since it was built")
    wanted = config.contract()
    if not config.max_samples_per_game and not found.get("max_samples_per_game"):
        # Without a cap nothing is drawn, and the seed means nothing.
        wanted["seed"] = found.get("seed", 0)
    return "" if found == wanted else f"its config is {found}, wanted {wanted}"


def check_sidecar(dataset: Path, split: str, hashed: bool) -> None:
    """Raise StaleCache if the dataset has a sidecar that is not of the split's rows.

    Offsets and phases are taken from it unread, so that a changed row would
    give samples of no game. hashed: as for `check_cache`.
    """
    if sidecar.Sidecar.open(dataset, split) is None:
        return
    jsonl = dataset / f"{split}.jsonl"
    cure = f"build the dataset again, or remove {sidecar.FOLDER}/ to have the games replayed"
    try:
        noted = sidecar.read_rows(dataset)[split]
        told = (int(noted["bytes"]), str(noted["sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        where = sidecar.rows_file(dataset)
        raise StaleCache(f"{where}: does not name the rows of {split} ({error!r}); {cure}") from (
            error
        )
    if _changed(jsonl, *told, hashed):
        raise StaleCache(f"{jsonl}: has changed since its sidecar was written; {cure}")


def _config_of(dataset: Path) -> CacheConfig:
    """The config that a month's cache was built with, else the one that its dataset is for."""
    cache, stats = dataset / CACHE_FOLDER, dataset / STATS
    if (cache / CACHE_MANIFEST).exists():
        try:
            told: Mapping[str, Any] = _manifest(cache)["config"]
            return CacheConfig(
                min_context=int(told["min_context"]),
                min_target=int(told["min_target"]),
                max_samples_per_game=int(told["max_samples_per_game"]),
                seed=int(told["seed"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _stale(cache, f"its manifest cannot be read ({error!r})") from error
    try:
        found = json.loads(stats.read_bytes())
        told = found["runtime_splice_defaults"]
        return CacheConfig(
            min_context=int(told["min_context"]),
            min_target=int(told["min_target"]),
            seed=int(found["split_seed"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            stats, f"does not say which samples the dataset is for ({error!r}); pass a config"
        ) from error


def config_of(datasets: Sequence[Path]) -> CacheConfig:
    """The config that all these months have in common.

    The seed counts only where there is a cap: else nothing is drawn. Raises
    BadInput where months disagree or do not say, StaleCache for a broken cache.
    """
    first: tuple[Path, CacheConfig] | None = None
    for dataset in datasets:
        config = _config_of(dataset)
        if first is None:
            first = (dataset, config)
            continue
        one, other = first[1].contract(), config.contract()
        if not config.max_samples_per_game:
            one["seed"] = other["seed"]
        if one != other:
            raise BadInput(
                dataset,
                f"is for samples of {config.contract()}, {first[0]} of {first[1].contract()}; "
                "pass the config that is wanted for all",
            )
    return first[1] if first else CacheConfig()

"""All builders of a month in a row, and digests of what they wrote."""

import hashlib
import json
from pathlib import Path
from typing import Any

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.run.parts import PartStore

VOLATILE = {"manifest.json", "stats.json", "paths.json", "vocab_rows_meta.json"}


def digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in VOLATILE
    }


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def chain(pgns: list[Path], root: Path, workers: int, parts: bool) -> dict[str, str]:
    """Build a month in many small parts; returns the digests of its payload."""

    def store(name: str) -> PartStore | None:
        folder = root / "parts" / name
        folder.mkdir(parents=True, exist_ok=True)
        return PartStore(folder) if parts else None

    out = root / "out"
    out.mkdir(parents=True)
    config = ValidateConfig(share_bytes=30_000, workers=workers)
    validate(pgns, out / "valid", config, parts=store("valid"))
    game = GameConfig(share_bytes=40_000, workers=workers)
    build_game_dataset(out / "valid", out / "game", game, parts=store("game"))
    cache = CacheConfig(share_games=50, workers=workers)
    build_splice_cache(out / "game", out / "cache", cache, parts=store("cache"))
    splice = SpliceConfig(max_samples_per_game=8, share_bytes=40_000, workers=workers)
    build_splice_dataset(out / "valid", out / "splice", splice, parts=store("splice"))
    return digests(out)


def live_row(**more: Any) -> dict[str, Any]:
    moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7"]
    base = {"game_id": "x", "headers": {}, "result": "1-0", "winner_side": "W", "plies": 10}
    return {**base, "moves_uci": moves, **more}

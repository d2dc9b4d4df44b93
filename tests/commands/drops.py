"""Drops of 2048 and their packs, for tests of the commands."""

import gzip
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from gristmill.macroxue.samples import write_drop

Command = Callable[..., Result]
DROPS, PACKS = "drops/macroxue", "macroxue/packs"


def land(data: Path, key: str, seed: int = 1) -> Path:
    write_drop(data / DROPS / key, seed=seed, games=1, max_moves=30, depth=6)
    return data / DROPS / key


def spoil(folder: Path) -> Path:
    """Leave out the brace that ends line 2 of the drop's game."""
    (file,) = folder.glob("*.jsonl.gz")
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    lines[1] = lines[1][:-1]
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    return file


def printed(done: Result, status: int = 0) -> str:
    """What a command printed that ended with this status."""
    assert done.exit_code == status, done.output
    return done.output

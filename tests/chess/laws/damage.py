"""Damage to the files of an artifact."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def edit(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the object of a JSON file."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def grow(path: Path) -> None:
    """Append 16 bytes."""
    path.write_bytes(path.read_bytes() + bytes(16))


def flip(path: Path, at: int, by: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= by
    path.write_bytes(data)


def cut(path: Path) -> None:
    """Take the last byte away."""
    path.write_bytes(path.read_bytes()[:-1])


def on(name: str, damage: Callable[..., object], *how: Any) -> Callable[[Path], object]:
    """Damage to a file of an artifact, by its name in the folder that it is given."""
    return lambda folder: damage(folder / name, *how)

"""A shard for tests that damage it: change a value, list the broken laws."""

from pathlib import Path

import numpy as np

from gristmill.synth.format import megatron
from gristmill.synth.laws import kd_laws

FRACTION = 0.3
"""The valid fraction of the fixture `kd_root`."""


def set_value(path: Path, dtype: str, place: int, value: int) -> None:
    """Change one value of a bin file."""
    values = np.fromfile(path, dtype=dtype)
    values[place] = value
    path.write_bytes(values.tobytes())


def train_tokens(root: Path) -> megatron.Indexed:
    return megatron.read(root / "train/shard_00_tokens")


def broken_laws(root: Path, fraction: float | None = FRACTION) -> set[str]:
    return {violation.law for violation in kd_laws(root, "00", fraction)}

"""Writing the sample drops of all families; each family generates its own (`samples.py` in it)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from gristmill.families import catalogs


def write_samples(data_root: Path) -> list[Path]:
    """Write the sample drops of every family under `<data_root>/drops`; return their paths.

    A drop that exists is left as it is. A new one appears whole: it is written into a hidden
    folder next to its place and renamed.
    """
    writers = {
        data_root / "drops" / drop: write
        for each in catalogs()
        for drop, write in each.samples.items()
    }
    for path, write in writers.items():
        if not path.exists():
            _write_whole(path, write)
    return list(writers)


def _write_whole(drop: Path, write: Callable[[Path], object]) -> None:
    drop.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=drop.parent, prefix=f".{drop.name}."))
    try:
        made = scratch / drop.name
        write(made)
        made.rename(drop)
    finally:
        shutil.rmtree(scratch)

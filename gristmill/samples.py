"""Writing the sample drops of all families; each family generates its own (`samples.py` in it)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from gristmill.families import catalogs


def write_samples(data_root: Path) -> list[Path]:
    """Write the sample drops of every family under `<data_root>/drops`; return their paths.

    A drop that exists is left as it is, and none is written whose place another drop has. A new
    one appears whole: it is written into a hidden folder next to its place and renamed.
    """
    taken = taken_places(data_root)
    writers = {
        data_root / "drops" / drop: write
        for each in catalogs()
        for drop, write in each.samples.items()
    }
    for path, write in writers.items():
        if path not in taken and not path.exists():
            _write_whole(path, write)
    return [path for path in writers if path not in taken]


def taken_places(data_root: Path) -> dict[Path, Path]:
    """Returns the sample drops that are not written, each with the drop that has its place.

    data_root: the data root.
    """
    found: dict[Path, Path] = {}
    for each in catalogs():
        others: dict[str, Path] = {}
        for inbox in each.inboxes:
            for path in sorted((data_root / "drops" / inbox).glob("[!.]*")):
                if f"{inbox}/{path.name}" not in each.samples:
                    others.setdefault(each.place_of(path), path)
        for drop in each.samples:
            path = data_root / "drops" / drop
            if each.place_of(path) in others and not path.exists():
                found[path] = others[each.place_of(path)]
    return found


def _write_whole(drop: Path, write: Callable[[Path], object]) -> None:
    drop.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=drop.parent, prefix=f".{drop.name}."))
    try:
        made = scratch / drop.name
        write(made)
        made.rename(drop)
    finally:
        shutil.rmtree(scratch)

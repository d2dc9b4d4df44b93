"""Deterministic sample drops of our own making, one module a family."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_samples(data_root: Path) -> list[Path]:
    """Write the sample drops of every family under `<data_root>/drops`; return where they lie.

    A drop that is there already is left as it is. A new one appears whole: it
    is written into a hidden folder beside its place and renamed.
    """
    from gristmill.samples import chess, macroxue
    from gristmill.synth.build import source

    home = data_root / "drops"
    d6, d7 = home / "macroxue" / "sample_d6", home / "macroxue" / "sample_d7"
    pool = home / "pools" / "samples.toml"
    months = [home / "chess" / "sample_2024-01.zip", home / "chess" / "sample_2024-02.pgn"]
    writers: dict[Path, Callable[[Path], object]] = {
        d6: lambda to: macroxue.write_drop(to, 272_350_805, games=10, max_moves=800, depth=6),
        d7: lambda to: macroxue.write_drop(
            to, 1_273_930_896, games=10, max_moves=800, depth=7, legacy=True
        ),
        pool: lambda to: to.write_text('members = ["sample_d6", "sample_d7"]\n'),
        months[0]: lambda to: chess.write_month(to, "2024-01", games=600, seed=1),
        months[1]: lambda to: chess.write_month(to, "2024-02", games=700, seed=1),
        home / source.RAW / source.SAMPLES: _write_conversations,
    }
    for drop, write in writers.items():
        if not drop.exists():
            _write_whole(drop, write)
    return list(writers)


def _write_conversations(drop: Path) -> None:
    from gristmill.samples import synth

    synth.write_drop(drop)
    # A thousandth of so few conversations would leave nothing to validate on.
    (drop / "gristmill.toml").write_text("[synth.kd_shards]\nvalid_fraction = 0.1\n")


def _write_whole(drop: Path, write: Callable[[Path], object]) -> None:
    drop.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=drop.parent, prefix=f".{drop.name}."))
    try:
        made = scratch / drop.name
        write(made)
        made.rename(drop)
    finally:
        shutil.rmtree(scratch)

"""Deterministic sample drops of our own making, one module a family."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


def write_samples(data_root: Path) -> list[Path]:
    """Write the sample drops of every family under `<data_root>/drops`; return where they lie.

    A drop that is there already is left as it is. A new one appears whole: it
    is written into a hidden folder beside its place and renamed.
    """
    from gristmill.samples import macroxue, synth
    from gristmill.synth import sources

    home = data_root / "drops" / "macroxue"
    home.mkdir(parents=True, exist_ok=True)
    drops = [home / "sample_d6", home / "sample_d7"]
    for drop, seed, depth, legacy in zip(
        drops, (272_350_805, 1_273_930_896), (6, 7), (False, True), strict=True
    ):
        if drop.exists():
            continue
        scratch = Path(tempfile.mkdtemp(dir=home, prefix=f".{drop.name}."))
        try:
            made = scratch / drop.name
            macroxue.write_drop(made, seed, games=10, max_moves=800, depth=depth, legacy=legacy)
            made.rename(drop)
        finally:
            shutil.rmtree(scratch)
    pool = data_root / "drops" / "pools" / "samples.toml"
    if not pool.exists():
        pool.parent.mkdir(parents=True, exist_ok=True)
        scratch_pool = pool.with_name(f".{pool.name}")
        scratch_pool.write_text('members = ["sample_d6", "sample_d7"]\n')
        scratch_pool.rename(pool)
    conversations = data_root / "drops" / sources.RAW / sources.SAMPLES
    if not conversations.exists():
        conversations.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=conversations.parent, prefix=".samples."))
        try:
            made = scratch / sources.SAMPLES
            synth.write_drop(made)
            # A thousandth of so few conversations would leave nothing to validate on.
            (made / "gristmill.toml").write_text("[synth.kd_shards]\nvalid_fraction = 0.1\n")
            made.rename(conversations)
        finally:
            shutil.rmtree(scratch)
    return [*drops, pool, conversations]

"""Tells the folders of the SYNTH family apart, without importing what reads them.

Source: `docs/formats/synth.md#harmony-parquet` and `docs/formats/synth.md#shard-layout`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Kind = Literal["harmony", "megatron"]


def kind_of(path: Path) -> Kind | None:
    """Return which SYNTH artifact a folder holds, by the names of its files.

    path: any folder; it need not exist.

    Returns "megatron" for Megatron datasets of conversations (a folder with
    trace files), "harmony" for Harmony shards, None for any other folder. A
    folder that holds both is "megatron".
    """
    if any(path.glob("trace/trace_*.parquet")):
        return "megatron"
    if any(path.glob("synth_harmony_shard_*.parquet")):
        return "harmony"
    return None

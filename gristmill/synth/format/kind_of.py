"""Tells the folders of the SYNTH family apart, without importing what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Kind = Literal["harmony", "megatron"]


def kind_of(path: Path) -> Kind | None:
    """Return which SYNTH artifact a folder holds, by the names of its files."""
    if any(path.glob("trace/trace_*.parquet")):
        return "megatron"
    if any(path.glob("synth_harmony_shard_*.parquet")):
        return "harmony"
    return None


def asset_of(folder: Path) -> str | None:
    """The asset whose laws and views a folder without a record takes, None where it has none.

    folder: any path. Another program writes Megatron datasets without a trace.
    """
    if (folder / "dataset_dict.json").is_file():
        return "synth/distill"
    kind = kind_of(folder)
    if kind == "megatron" or (kind is None and any(folder.glob("*/shard_*_tokens.idx"))):
        return "synth/kd_shards"
    return "synth/harmony" if kind == "harmony" else None

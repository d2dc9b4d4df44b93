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

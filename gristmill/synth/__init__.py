"""SYNTH: raw Parquet to Harmony conversations to Megatron datasets with loss masks and spans.

The public names are loaded when they are asked for, so that importing this
package imports neither Arrow nor torch nor Megatron.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.synth.config import HarmonyConfig, KDConfig
    from gristmill.synth.harmony import to_harmony
    from gristmill.synth.kd import build_kd_shard
    from gristmill.synth.loss import span_normalized_loss
    from gristmill.synth.reader import SynthKDDataset

__all__ = [
    "HarmonyConfig",
    "KDConfig",
    "SynthKDDataset",
    "build_kd_shard",
    "span_normalized_loss",
    "to_harmony",
]

_PLACES = {
    "HarmonyConfig": "config",
    "to_harmony": "harmony",
    "KDConfig": "config",
    "build_kd_shard": "kd",
    "span_normalized_loss": "loss",
    "SynthKDDataset": "reader",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)

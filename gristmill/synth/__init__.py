"""SYNTH: raw Parquet to Harmony conversations to Megatron datasets with loss masks and spans.

Public names are imported when they are first used: neither Arrow, torch nor Megatron is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.synth.builders.harmony import to_harmony
    from gristmill.synth.builders.kd_shard import build_kd_shard
    from gristmill.synth.config import HarmonyConfig, KDConfig
    from gristmill.synth.read.dataset import StaleDataset, SynthKDDataset
    from gristmill.synth.read.documents import DistilledRows, SynthKDDocuments
    from gristmill.synth.read.loss import span_normalized_loss
    from gristmill.synth.read.training import KDTraining, SynthKDBlendBuilder, add_kd_arguments

__all__, __getattr__ = lazy_exports(__name__)

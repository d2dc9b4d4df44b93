"""Reasoning corpora to GPT-2 token shards, with alignment and quality control.

The public names are imported when they are first used: this import loads neither numpy nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.corpora.raw.texts import Unfit
    from gristmill.corpora.raw.transforms import Transform
    from gristmill.corpora.records import Record
    from gristmill.reasoning.builders.align import align
    from gristmill.reasoning.builders.manifest import write_manifest
    from gristmill.reasoning.builders.normalize import normalize
    from gristmill.reasoning.builders.raw_manifest import write_raw_manifest
    from gristmill.reasoning.builders.report import coverage_report
    from gristmill.reasoning.builders.shards import tokenize
    from gristmill.reasoning.config import (
        AlignConfig,
        NormalizeConfig,
        ReportConfig,
        TokenizeConfig,
    )
    from gristmill.reasoning.read.shard_reader import ShardReader
    from gristmill.reasoning.read.shard_rows import by_step
    from gristmill.reasoning.read.stage import stage, unstage
    from gristmill.reasoning.read.supervised import check_gate
    from gristmill.reasoning.read.trace import trace
    from gristmill.reasoning.read.verify import verify_shards

__all__ = [
    "AlignConfig",
    "NormalizeConfig",
    "Record",
    "ReportConfig",
    "ShardReader",
    "TokenizeConfig",
    "Transform",
    "Unfit",
    "align",
    "by_step",
    "check_gate",
    "coverage_report",
    "normalize",
    "stage",
    "tokenize",
    "trace",
    "unstage",
    "verify_shards",
    "write_manifest",
    "write_raw_manifest",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "builders.align": ("align",),
        "builders.manifest": ("write_manifest",),
        "builders.normalize": ("normalize",),
        "builders.raw_manifest": ("write_raw_manifest",),
        "builders.report": ("coverage_report",),
        "builders.shards": ("tokenize",),
        "config": (
            "AlignConfig",
            "NormalizeConfig",
            "ReportConfig",
            "TokenizeConfig",
        ),
        "gristmill.corpora.records": ("Record",),
        "gristmill.corpora.raw.texts": ("Unfit",),
        "gristmill.corpora.raw.transforms": ("Transform",),
        "read.shard_reader": ("ShardReader",),
        "read.shard_rows": ("by_step",),
        "read.stage": (
            "stage",
            "unstage",
        ),
        "read.supervised": ("check_gate",),
        "read.trace": ("trace",),
        "read.verify": ("verify_shards",),
    },
)

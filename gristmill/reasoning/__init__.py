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
    from gristmill.reasoning.builders.manifest import write_manifest, write_raw_manifest
    from gristmill.reasoning.builders.normalize import normalize
    from gristmill.reasoning.builders.report import coverage_report
    from gristmill.reasoning.builders.shards import tokenize
    from gristmill.reasoning.config import (
        AlignConfig,
        NormalizeConfig,
        ReportConfig,
        TokenizeConfig,
    )
    from gristmill.reasoning.read.shard_files import verify_shards
    from gristmill.reasoning.read.shard_reader import ShardReader
    from gristmill.reasoning.read.stage import stage, unstage
    from gristmill.reasoning.read.supervised import by_step, check_gate
    from gristmill.reasoning.read.trace import trace

__all__, __getattr__ = lazy_exports(__name__)

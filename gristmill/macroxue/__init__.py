"""The macroxue family: logs of 2048 games to packs, value sidecars and pools.

A public name is imported when it is first used. Source: `docs/macroxue.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.macroxue.builders.pack import PackSummary, pack
    from gristmill.macroxue.builders.pool import MergeSummary, merge
    from gristmill.macroxue.builders.training_view import ViewSummary, training_view
    from gristmill.macroxue.builders.values import ValueSummary, value_sidecar
    from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig, ViewConfig
    from gristmill.macroxue.read.dataset import StaleDataset, StepDataset
    from gristmill.macroxue.rules.game import turned

__all__, __getattr__ = lazy_exports(__name__)

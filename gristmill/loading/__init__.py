"""One loader for all families: it resumes anywhere, mixes without copying, and replays any step.

A public name is imported when it is first used. Source: `docs/training.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.loading.loader import BatchSampler, Loader
    from gristmill.loading.mix_file import read_mix
    from gristmill.loading.plan import Mixture, Plan, mixture
    from gristmill.loading.source import Grouped, Identity, Packed, Picked, Source
    from gristmill.loading.state import OtherData

__all__, __getattr__ = lazy_exports(__name__)

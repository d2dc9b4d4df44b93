"""2048 self-play logs to packs, value sidecars and pools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.macroxue.config import MergeConfig, PackConfig, ValueConfig
    from gristmill.macroxue.merger import MergeSummary, merge
    from gristmill.macroxue.packer import PackSummary, pack
    from gristmill.macroxue.reader import StepDataset
    from gristmill.macroxue.values import ValueSummary, value_sidecar

# No module here bears the name of its builder: importing the one would put it
# in the place of the other.
_HOMES = {
    "MergeConfig": "gristmill.macroxue.config",
    "MergeSummary": "gristmill.macroxue.merger",
    "PackConfig": "gristmill.macroxue.config",
    "PackSummary": "gristmill.macroxue.packer",
    "StepDataset": "gristmill.macroxue.reader",
    "ValueConfig": "gristmill.macroxue.config",
    "ValueSummary": "gristmill.macroxue.values",
    "merge": "gristmill.macroxue.merger",
    "pack": "gristmill.macroxue.packer",
    "value_sidecar": "gristmill.macroxue.values",
}

__all__ = [
    "MergeConfig",
    "MergeSummary",
    "PackConfig",
    "PackSummary",
    "StepDataset",
    "ValueConfig",
    "ValueSummary",
    "merge",
    "pack",
    "value_sidecar",
]


def __getattr__(name: str) -> Any:
    """Load a builder's module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

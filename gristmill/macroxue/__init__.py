"""2048 self-play logs to packs, value sidecars and pools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.macroxue.packer import PackConfig, PackSummary, pack

# No module here bears the name of its builder: importing the one would put it
# in the place of the other.
_HOMES = {
    "PackConfig": "gristmill.macroxue.packer",
    "PackSummary": "gristmill.macroxue.packer",
    "pack": "gristmill.macroxue.packer",
}

__all__ = ["PackConfig", "PackSummary", "pack"]


def __getattr__(name: str) -> Any:
    """Load a builder's module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

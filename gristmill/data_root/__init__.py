"""A data root: its paths and settings, drops that may be built from, and what is published."""

from gristmill.data_root.drops import DataRoot, NotBuilt, NotReady, NotRebuilt

__all__ = ["DataRoot", "NotBuilt", "NotReady", "NotRebuilt"]

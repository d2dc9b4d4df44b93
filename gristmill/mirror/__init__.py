"""A mirror: published artifacts as immutable versions, in a folder or in object storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.mirror.store import MirrorError
    from gristmill.mirror.transfers import Pulled, pull, push
    from gristmill.mirror.versions import Pushed

__all__, __getattr__ = lazy_exports(__name__)

"""Questions of evaluation sets in training texts, and where a text stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gristmill.leaks.findings import (
        Finding,
        Leak,
        Place,
        audit,
        duplicates,
        holding,
        where_is,
        worst,
    )
    from gristmill.leaks.texts import EvaluationSet, Part, every_part, parts_of, set_names, sets_of

__all__, __getattr__ = lazy_exports(__name__)

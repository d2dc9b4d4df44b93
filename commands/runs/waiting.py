"""Tells follow-on failures of `gristmill materialize` from failures of their own.

A target whose build needs what failed earlier in the same call waits for it; it has no error of
its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import dagster as dg

from commands.graph import Graph
from commands.runs.table import Outcome
from resources.lake import NotBuilt, NotRebuilt

_MOST_NAMED: Final = 3
# Other errors are the target's own, as that another process builds it.
_FOLLOWS: Final = (NotBuilt.__name__, NotRebuilt.__name__)


class Failures:
    """The targets of one call that failed, and those that wait for them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        # Of each target that was not built: the failed targets that it waits for, or itself.
        self._roots: dict[tuple[dg.AssetKey, str], list[str]] = {}

    def judged(self, asset: dg.AssetKey, outcome: Outcome) -> Outcome:
        """Returns the outcome of a target; `not built` with what it waits for if it only waits."""
        if outcome.status != "failed":
            return outcome
        if roots := self._waits_for(asset, outcome):
            more = f" and {len(roots) - _MOST_NAMED} more" if len(roots) > _MOST_NAMED else ""
            reason = f"waits for {', '.join(roots[:_MOST_NAMED])}{more}"
            outcome = replace(outcome, status="not built", reason=reason)
        self._roots[asset, outcome.partition] = roots or [outcome.target]
        return outcome

    def follows(self, asset: dg.AssetKey, key: str | None, error: Exception) -> Outcome | None:
        """Returns the outcome of a target that needs no run, since it waits for a failed one."""
        outcome = Outcome(
            asset.to_user_string(),
            key or "",
            "failed",
            reason=str(error),
            error=type(error).__name__,
        )
        return self.judged(asset, outcome) if self._waits_for(asset, outcome) else None

    def _waits_for(self, asset: dg.AssetKey, outcome: Outcome) -> list[str]:
        if outcome.error not in _FOLLOWS:
            return []
        parents = self._graph.parents(asset)
        found: dict[str, None] = {}
        for (parent, partition), roots in self._roots.items():
            if parent in parents and self._needs(asset, outcome, parent, partition):
                found |= dict.fromkeys(roots)
        return list(found)

    def _needs(
        self, asset: dg.AssetKey, outcome: Outcome, parent: dg.AssetKey, partition: str
    ) -> bool:
        own, other = self._graph.partitions(asset), self._graph.partitions(parent)
        if own is None or other is None:
            return True
        if own == other:
            return outcome.partition == partition
        # Which partitions it needs is in its drop; the error names the first that is missing.
        return f"{parent.to_user_string()} {partition} is not built" in outcome.reason

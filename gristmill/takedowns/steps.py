"""Which steps of runs saw the rows that go, by the states of their loaders.

Source: `docs/takedowns.md#runs-that-saw-the-rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gristmill.loading.commands import loader_of
from gristmill.loading.plan import step_of
from gristmill.run.progress import Progress
from gristmill.takedowns.plan import Plan
from gristmill.takedowns.work import raw_path

_MOST: Final = 20


def steps(
    root: Path, plan: Plan, states: Sequence[Path], mix: Path, progress: Progress
) -> Iterator[str]:
    """Yield what runs saw of the rows of a plan, a line for each state and source.

    Each sample of an artifact that is to be built again is traced to its raw row.
    """
    named = {
        (raw_path(root, name, file), row)
        for name, rows in plan.rows.items()
        for file, row, _ in rows
    }
    old = set(plan.versions.values())
    for state in states:
        loader = loader_of(state, mix, root)
        found = set[int]()
        for at, source in enumerate(loader.plan.sources):
            if old.isdisjoint(source.identity.versions):
                continue
            count = int(source.cuts[-1])
            with progress.stage(f"tracing {source.identity.artifact}", "rows", count) as stage:
                for number in range(count):
                    facts = [each.facts() for each in source.origin(number)]
                    files = [(each.get("raw_file"), each.get("raw_row", 0)) for each in facts]
                    if not named.isdisjoint([*files, *((file, 0) for file, _ in files)]):
                        found |= {*loader.plan.seen(at, number, loader.position)}
                    stage.advance(1)
        seen = sorted({step_of(loader.changes, position) for position in found})
        shown = ", ".join(map(str, seen[:_MOST])) + (", ..." if len(seen) > _MOST else "")
        of = f"{loader.step:,} steps of {state.name}"
        yield (
            f"{len(found):,} samples in {len(seen):,} of {of} had the rows: {shown}"
            if seen
            else (f"none of {of} had the rows")
        )

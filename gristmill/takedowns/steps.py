"""Which steps of runs saw the rows that go, by the states of their loaders.

Source: `docs/takedowns.md#runs-that-saw-the-rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gristmill.loading.commands import loader_of
from gristmill.loading.plan import step_of
from gristmill.run.progress import Progress
from gristmill.takedowns.naming import target_of
from gristmill.takedowns.plan import Plan
from gristmill.takedowns.work import raw_path

_MOST: Final = 20
_BYTES: Final = ("raw_bytes", "raw_unpacked_bytes")


def steps(
    root: Path, plan: Plan, states: Sequence[Path], mix: Path, progress: Progress
) -> Iterator[str]:
    """Yield what runs saw of the rows of a plan, a line for each state.

    Each sample of an artifact that is to be built again is traced to its raw row.
    """
    is_named, old = _named(root, plan), set(plan.versions.values())
    for state in states:
        loader, found = loader_of(state, mix, root), set[int]()
        for at, source in enumerate(loader.plan.sources):
            if old.isdisjoint(source.identity.versions):
                continue
            count = int(source.cuts[-1])
            with progress.stage(f"tracing {source.identity.artifact}", "rows", count) as stage:
                for number in range(count):
                    if any(is_named(each.facts()) for each in source.origin(number)):
                        found |= {*loader.plan.seen(at, number, loader.position)}
                    stage.advance(1)
        seen = sorted({step_of(loader.changes, position) for position in found})
        shown = ", ".join(map(str, seen[:_MOST])) + (", ..." if len(seen) > _MOST else "")
        of = f"{loader.step:,} steps of {state.name}"
        yield (
            f"{len(found):,} samples in {len(seen):,} of {of} had the rows: {shown}"
            if seen
            else f"none of {of} had the rows"
        )


def _named(root: Path, plan: Plan) -> Callable[[Mapping[str, object]], bool]:
    """What says whether the facts of a trace lead to a row of a plan."""
    rows, spans = dict[str, set[int]](), dict[str, list[tuple[int, int]]]()
    for name, some in plan.rows.items():
        target = target_of(root, name)
        for file, row, _ in some:
            rows.setdefault(raw_path(root, name, file), set()).add(row)
        for file in {file for file, row, _ in some if row} if target.how.places else ():
            path = raw_path(root, name, file)
            places = target.how.places and target.how.places(root / path)
            spans[path] = [places[row - 1] for row in rows[path]] if places else []

    def is_named(facts: Mapping[str, object]) -> bool:
        for path in (each for each in facts.values() if isinstance(each, str) and each in rows):
            if 0 in rows[path] or facts.get("raw_row") in rows[path]:
                return True
            at = next((str(facts[each]) for each in _BYTES if each in facts), "")
            begin = int(at.partition("-")[0] or -1)
            if any(low <= begin < high for low, high in spans.get(path, ())):
                return True
        return False

    return is_named

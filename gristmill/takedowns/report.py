"""What a takedown says: before it, as a dry run, and after it, as JSON and as text.

Source: `docs/takedowns.md#the-report`, `docs/takedowns.md#runs-that-saw-the-rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from gristmill.corpora.raw.forgotten import key_of
from gristmill.families import forgets
from gristmill.loading.commands import loader_of
from gristmill.loading.plan import step_of
from gristmill.run import amounts
from gristmill.run.progress import Progress
from gristmill.takedowns.plan import Plan
from gristmill.takedowns.search import Found, normalised, octets_of
from gristmill.takedowns.work import raw_rows

_MOST: Final = 20
_BYTES: Final = ("raw_bytes", "raw_unpacked_bytes")


def dry_lines(
    root: Path, plan: Plan, found: Sequence[Found], sizes: Mapping[str, int]
) -> Iterator[str]:
    """Yield what a plan would do, and where its texts stand.

    sizes: the bytes of each artifact that it builds again.
    """
    for name, rows in plan.rows.items():
        verb = "to erase" if plan.erases else "to leave out of builds"
        named = ", ".join(f"{file}:{row}" for file, row, _ in rows[:5])
        more = f" and {len(rows) - 5:,} more" if len(rows) > 5 else ""
        yield f"{name}: {_count(len(rows), 'row')} {verb}, {named}{more}"
    if not plan.rows:
        yield f"{plan.drop}: no row is one of the texts"
    yield from _shared(plan.shared)
    files = Counter((f"{each.place}: " if each.place else "", each.path) for each in found)
    for (of, path), count in [*files.items()][:_MOST]:
        yield f"holds it: {of}{path.relative_to(root)}, {_count(count, 'place')}"
    if len(files) > _MOST:
        yield f"holds it: {len(files) - _MOST:,} more files"
    for place, file, row in plan.left[:_MOST]:
        yield f"stays: {place} {file} row {row:,} holds a text: --containing takes it"
    if len(plan.left) > _MOST:
        yield f"stays: {len(plan.left) - _MOST:,} more rows that hold a text"
    for title, size in sizes.items():
        yield f"built again: {title}, {amounts.size(size)}"
    yield from plan.steps


def _shared(count: int) -> Iterator[str]:
    if count:
        texts = _count(count, "text")
        yield f"{texts} of these rows stand in other rows of the drop, too, and are not looked for"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def report_of(
    root: Path,
    plan: Plan,
    still: Sequence[Found],
    because: Sequence[Found],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The report of a takedown as JSON has it. It has no text and no id: keyed hashes alone.

    still: where a text stands that should not. because: where one stands since a row stays.
    facts: what was removed, and what was not reached.
    """
    hash_of = partial(blake2b, key=key_of(root), digest_size=16)
    texts = [octets_of(normalised(each)) for each in plan.texts]

    def places(found: Sequence[Found]) -> list[dict[str, Any]]:
        named = ((each.path.relative_to(root).as_posix(), each) for each in found)
        return [{"file": file, "row": each.row, "column": each.column} for file, each in named]

    return {
        "format": "gristmill.takedown",
        "version": 1,
        **{name: getattr(plan, name) for name in ("drop", "reason", "date", "counts", "steps")},
        "erased": plan.erases,
        "rows": {
            name: [dict(zip(("file", "row", "hash"), each, strict=True)) for each in rows]
            for name, rows in plan.rows.items()
        },
        "texts": [hash_of(each).hexdigest() for each in texts],
        "texts_of_other_rows": plan.shared,
        "stays": [dict(zip(("place", "file", "row"), each, strict=True)) for each in plan.left],
        "stands_still": places(still),
        "stands_since_rows_stay": places(because),
        **facts,
    }


def lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report in words."""
    counts = Counter(report["counts"])
    for name, rows in report["rows"].items():
        what = "erased from" if report["erased"] else "left out of builds of"
        yield f"{_count(len(rows), 'row')} {what} {name} on {report['date']}: {report['reason']}"
    if report["erased"]:
        less = counts["erased_bytes"]
        yield f"raw files: {less:,} bytes fewer; the rest is as it was, byte for byte"
    made, of = counts["rebuilt_bytes"], counts["affected_bytes"]
    yield f"built again: {_count(counts['rebuilt'], 'artifact')}, {made:,} bytes of {of:,}"
    yield from _shared(report["texts_of_other_rows"])
    yield from (f"removed: {name}" for name in report["removed"])
    for each in report["stays"][:_MOST]:
        yield f"stays: {each['place']} {each['file']} row {each['row']:,}, which holds a text"
    yield from report["steps"]
    still, octets = report["stands_still"], amounts.size(report["scanned_bytes"])
    where = f"{_count(len(still), 'place')} with a text that went"
    yield f"scan of {report['scanned_files']:,} files, {octets}: {where}"
    yield from (f"stands still: {each['file']} row {each['row']:,}" for each in still[:_MOST])
    if because := report["stands_since_rows_stay"]:
        yield f"{_count(len(because), 'place')} hold a text since rows stay in raw files"
    for title in report["stale"]:
        yield f"made from files as they were: {title}: build it again"
    yield from (f"not reached: {line}" for line in report["not_reached"])


def steps(
    root: Path, plan: Plan, states: Sequence[Path], mix: Path, progress: Progress
) -> Iterator[str]:
    """Yield what runs saw of the rows of a plan, a line for the state of each loader.

    Each sample of an artifact that is to be built again is traced to its raw row.
    """
    rows, spans = raw_rows(root, plan.named()), dict[str, list[tuple[int, int]]]()
    for path, own in rows.items():
        how = forgets(path.split("/")[1])
        places = how.places(root / path) if how and how.places else None
        spans[path] = [places[row - 1] for row in own if row] if places else []

    def is_named(facts: Mapping[str, object]) -> bool:
        for path in (each for each in facts.values() if isinstance(each, str) and each in rows):
            at = next((str(facts[each]) for each in _BYTES if each in facts), "")
            begin = int(at.partition("-")[0] or -1)
            if not rows[path].isdisjoint((0, facts.get("raw_row"))) or any(
                low <= begin < high for low, high in spans[path]
            ):
                return True
        return False

    old = set(plan.versions.values())
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
        shown = ", ".join([*map(str, seen[:_MOST]), *["..."][: len(seen) > _MOST]])
        of = f"{loader.step:,} steps of {state.name}"
        said = f"{len(found):,} samples in {len(seen):,} of {of} had the rows: {shown}"
        yield said if seen else f"none of {of} had the rows"

"""What a takedown says: before it, as a dry run, and after it, as JSON and as text.

Source: `docs/takedowns.md#the-report`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from gristmill.corpora.raw.forgotten import key_of
from gristmill.run import amounts
from gristmill.takedowns.plan import Plan
from gristmill.takedowns.search import Found, normalised, octets_of
from gristmill.takedowns.work import Made

_MOST: Final = 20


def dry_lines(
    root: Path, plan: Plan, found: Sequence[Found], made: Sequence[Made]
) -> Iterator[str]:
    """Yield what a plan would do, and where its texts stand."""
    for name, rows in plan.rows.items():
        verb = "to erase" if plan.erases else "to leave out of builds"
        named = _some([f"{file}:{row}" for file, row, _ in rows])
        yield f"{name}: {_count(len(rows), 'row')} {verb}, {named}"
    if not plan.rows:
        yield f"{plan.drop}: no row is one of the texts"
    yield from _shared(plan.shared)
    yield from _places(root, found)
    for place, file, row in plan.left[:_MOST]:
        yield f"stays: {place} {file} row {row:,} holds a text: --containing takes it"
    if len(plan.left) > _MOST:
        yield f"stays: {len(plan.left) - _MOST:,} more rows that hold a text"
    for each in made:
        title = " ".join(filter(None, (each.record.asset, each.record.partition)))
        yield f"built again: {title}, {amounts.size(each.bytes)}"
    yield from plan.steps


def _shared(count: int) -> Iterator[str]:
    if count:
        texts = _count(count, "text")
        yield f"{texts} of these rows stand in other rows of the drop, too, and are not looked for"


def _places(root: Path, found: Sequence[Found]) -> Iterator[str]:
    """Yield the places of texts, a line a file."""
    rows = Counter((each.place, each.path) for each in found)
    for (place, path), count in list(rows.items())[:_MOST]:
        file = path.relative_to(root) if path.is_relative_to(root) else path
        yield f"holds it: {f'{place}: ' if place else ''}{file}, {_count(count, 'place')}"
    if len(rows) > _MOST:
        yield f"holds it: {len(rows) - _MOST:,} more files"


def _some(every: Sequence[str]) -> str:
    more = f" and {len(every) - 5:,} more" if len(every) > 5 else ""
    return ", ".join(every[:5]) + more


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def report_of(
    root: Path,
    plan: Plan,
    still: Sequence[Found],
    because: Sequence[Found],
    facts: dict[str, Any],
) -> dict[str, Any]:
    """The report of a takedown as JSON has it. It has no text and no id: keyed hashes alone.

    still: where a text stands that should not. because: where one stands since a row stays.
    facts: what was removed, and what was not reached.
    """
    key = key_of(root)
    return {
        "format": "gristmill.takedown",
        "version": 1,
        "drop": plan.drop,
        "reason": plan.reason,
        "date": plan.date,
        "erased": plan.erases,
        "rows": {
            name: [{"file": file, "row": row, "hash": own} for file, row, own in rows]
            for name, rows in plan.rows.items()
        },
        "texts": [
            blake2b(octets_of(normalised(each)), key=key, digest_size=16).hexdigest()
            for each in plan.texts
        ],
        "texts_of_other_rows": plan.shared,
        "counts": plan.counts,
        "stays": [{"place": place, "file": file, "row": row} for place, file, row in plan.left],
        "stands_still": [_place(root, each) for each in still],
        "stands_since_rows_stay": [_place(root, each) for each in because],
        "steps": plan.steps,
        **facts,
    }


def _place(root: Path, found: Found) -> dict[str, Any]:
    path = found.path
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    return {"file": name, "row": found.row, "column": found.column}


def text_of(report: dict[str, Any]) -> str:
    """A report in words."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: dict[str, Any]) -> Iterator[str]:
    counts = report["counts"]
    for name, rows in report["rows"].items():
        what = "erased from" if report["erased"] else "left out of builds of"
        yield f"{_count(len(rows), 'row')} {what} {name} on {report['date']}: {report['reason']}"
    if report["erased"]:
        less = counts["erased_bytes"]
        yield f"raw files: {less:,} bytes fewer; the rest is as it was, byte for byte"
    yield (
        f"built again: {_count(counts.get('rebuilt', 0), 'artifact')}, "
        f"{counts.get('rebuilt_bytes', 0):,} bytes of {counts.get('affected_bytes', 0):,}"
    )
    yield from _shared(report["texts_of_other_rows"])
    for name in report["removed"]:
        yield f"removed: {name}"
    for each in report["stays"][:_MOST]:
        yield f"stays: {each['place']} {each['file']} row {each['row']:,}, which holds a text"
    yield from report["steps"]
    still = report["stands_still"]
    yield (
        f"scan of {report['scanned_files']:,} files, {amounts.size(report['scanned_bytes'])}: "
        f"{_count(len(still), 'place')} with a text that went"
    )
    for each in still[:_MOST]:
        yield f"stands still: {each['file']} row {each['row']:,}"
    if because := report["stands_since_rows_stay"]:
        yield f"{_count(len(because), 'place')} hold a text since rows stay in raw files"
    for title in report["stale"]:
        yield f"made from files as they were: {title}: build it again"
    for line in report["not_reached"]:
        yield f"not reached: {line}"

"""What the records of artifacts say that is unusual and breaks no law.

See also `rules.py`: the check `noteworthy`, which warns of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from assets.checking.equal_inputs import equal_inputs, named, raw_hashes
from gristmill import provenance
from gristmill.contract import GristmillError, Violation
from gristmill.printable import printable
from gristmill.provenance import Input, Record

_LAW = "equal_inputs"
_TASKS = "puzzles/"


def equal_notes(record: Record, path: Path) -> Iterator[Violation]:
    """Yields that raw files of an artifact have the same bytes.

    Equal tasks of ARC are ordinary: they are named in the event alone.
    """
    if record.asset.startswith(_TASKS):
        return
    if groups := equal_inputs(_inputs(record, path)):
        found = f"raw files with the bytes of another one, {named(groups)}"
        yield Violation(_LAW, record.artifact, found)


def equal_across(
    record: Record, path: Path, others: Mapping[str, Mapping[str, str]]
) -> Iterator[Violation]:
    """Yields that a raw file of a partition is also that of another partition."""
    for own, sha256 in raw_hashes(_inputs(record, path)).items():
        for other, partition in sorted(others.get(sha256, {}).items()):
            if partition != record.partition:
                found = f"{printable(own)} has the bytes of {printable(other)}, of {partition}"
                yield Violation(_LAW, record.artifact, found)


def by_hash(records: Iterable[tuple[Record, Path]]) -> dict[str, dict[str, str]]:
    """Returns the partitions of raw files by path, by their sha256.

    records: with the paths that they were read from.
    """
    found: dict[str, dict[str, str]] = {}
    for record, path in records:
        for name, sha256 in raw_hashes(_inputs(record, path)).items():
            found.setdefault(sha256, {})[name] = record.partition or ""
    return found


def _inputs(record: Record, path: Path) -> list[Input]:
    try:
        return provenance.read_inputs(record, path)
    except GristmillError:
        return []  # the check `intact` reports it

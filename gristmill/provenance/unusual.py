"""What is unusual in a published artifact and breaks no law, wherever it is said.

The check `noteworthy`, `gristmill materialize`, `build`, `ls` and `verify` take it from here: the
notes in the record, what its counts say, and raw files that are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gristmill import families
from gristmill.contract import GristmillError, Violation, in_words
from gristmill.printable import plain, printable
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import MALFORMED, Input, Record, read_inputs, read_record

_LAW: Final = "equal_inputs"
_TASKS: Final = "puzzles/"
_DROPS: Final = "drops/"
_ORDINARY: Final = ".meta.json"
"""End of the names of the files beside 2048 games, which say little of them."""
_MOST_NAMED: Final = 5
_LONGEST: Final = 300

Others = Mapping[str, Mapping[str, str]]
"""The partitions of raw files by path, by their sha256."""


def unusual(
    item: Artifact, record: Record, others: Others | None = None, *, is_read: bool = True
) -> Iterator[Violation]:
    """Yield what is unusual in an artifact, with its folder or its path in the data root as place.

    record: that of `item`. others: raw files of all partitions of its asset, as `by_hash` returns
        them, where a file of two is unusual; default: none.
    is_read: whether files are read that records do not speak of (default True).
    """
    for note in record.notes.listed() if record.notes else ():
        yield Violation(note.law, f"{item.folder}: {note.where}", note.found)
    if (kind := families.kind_of_asset(record.asset)) is not None:
        for look in (kind.counted, kind.compared if is_read else None):
            yield from _found(look, item, record)
    inputs = inputs_of(record, item.record_path)
    yield from equal_notes(record.asset, record.artifact, record.partition, inputs, others)


def _found(
    look: Callable[[Record, Path], Iterable[Violation]] | None, item: Artifact, record: Record
) -> Sequence[Violation]:
    """What a family finds; whatever a file holds, others are looked at."""
    if look is None:
        return ()
    try:
        return list(look(record, item.folder))
    except Exception as error:  # noqa: BLE001  the check `intact` says what is damaged
        said = in_words(error)
        reason = plain(f"cannot be looked at: {type(said).__name__}: {said}", _LONGEST)
        return [Violation("check", record.artifact, reason)]


def lines(
    item: Artifact, record: Record, others: Others | None = None, *, is_read: bool = True
) -> list[str]:
    """Returns what is unusual in an artifact: a line for each law, with the first place of it.

    The arguments are those of `unusual`.
    """
    first: dict[str, str] = {}
    for note in unusual(item, record, others, is_read=is_read):
        where = note.where.removeprefix(f"{item.folder}: ").removeprefix(f"{item.folder}/")
        where = "" if where == record.artifact else f"{where}: "
        first.setdefault(note.law, f"{note.law}: {where}{note.found}")
    noted = record.notes.counts if record.notes else {}
    return [
        plain(text, _LONGEST) + (f" (and {noted[law] - 1:,} more)" if noted.get(law, 1) > 1 else "")
        for law, text in first.items()
    ]


def count(item: Artifact, record: Record, others: Others | None = None) -> int:
    """Returns how many notes there are on an artifact, of those that take no reading of its files.

    The arguments are those of `unusual`.
    """
    known = list(record.notes.listed()) if record.notes else []
    noted = sum(record.notes.counts.values()) if record.notes else 0
    return sum(1 for _ in unusual(item, record, others, is_read=False)) - len(known) + noted


def equal_notes(
    asset: str,
    artifact: str,
    partition: str | None,
    inputs: Iterable[Input],
    others: Others | None = None,
) -> Iterator[Violation]:
    """Yield that raw files have the same bytes: of an artifact, or of it and another partition.

    others: as of `unusual`. Equal tasks of puzzles have a note of their own.
    """
    given = list(inputs)
    if groups := [] if asset.startswith(_TASKS) else equal_inputs(given):
        found = f"raw files with the bytes of another one, {named(groups)}"
        yield Violation(_LAW, artifact, found)
    for own, sha256 in raw_hashes(given).items():
        for other, key in sorted((others or {}).get(sha256, {}).items()):
            if key != partition:
                found = f"{printable(own)} has the bytes of {printable(other)}, of {key}"
                yield Violation(_LAW, artifact, found)


def by_hash(records: Iterable[tuple[Record, Path]]) -> dict[str, dict[str, str]]:
    """Returns the partitions of raw files by path, by their sha256."""
    found: dict[str, dict[str, str]] = {}
    for record, path in records:
        for name, sha256 in raw_hashes(inputs_of(record, path)).items():
            found.setdefault(sha256, {})[name] = record.partition or ""
    return found


class AcrossPartitions:
    """The raw files of those assets of which a file in two partitions is unusual."""

    def __init__(
        self, artifacts: Iterable[Artifact], read: Callable[[Path], Record] = read_record
    ) -> None:
        """artifacts: of the data root. read: takes the path of a record, and reads it."""
        self._records: dict[str, list[tuple[Record, Path]]] = {}
        for item in artifacts:
            try:
                record = read(item.record_path)
            except MALFORMED:
                continue  # it has a line of its own
            kind = families.kind_of_asset(record.asset)
            if kind is not None and kind.across:
                self._records.setdefault(record.asset, []).append((record, item.record_path))
        self._known: dict[str, Others] = {}

    def of(self, asset: str) -> Others:
        """Those of an asset, as `unusual` takes them."""
        if asset not in self._known:
            self._known[asset] = by_hash(self._records.get(asset, ()))
        return self._known[asset]


def inputs_of(record: Record, path: Path) -> list[Input]:
    """Returns the inputs of a record; none where their list cannot be read."""
    try:
        return read_inputs(record, path)
    except GristmillError:
        return []  # the check `intact` reports it


def raw_hashes(inputs: Iterable[Input]) -> dict[str, str]:
    """Return the sha256 of the raw files of a record by path; empty files are left out."""
    return {
        item.path: item.sha256
        for item in inputs
        if item.path is not None
        and item.path.startswith(_DROPS)
        and not item.path.endswith(_ORDINARY)
        and item.sha256 is not None
        and item.bytes
    }


def equal_inputs(inputs: Iterable[Input]) -> list[list[str]]:
    """Return the paths of raw files that have the same bytes: a list of two or more for each."""
    by_hash: dict[str, list[str]] = {}
    for path, sha256 in raw_hashes(inputs).items():
        by_hash.setdefault(sha256, []).append(path)
    return sorted(sorted(paths) for paths in by_hash.values() if len(paths) > 1)


def named(groups: Sequence[Sequence[str]]) -> str:
    """Return how many raw files have the bytes of another one, and the first of them."""
    more = len(groups) - _MOST_NAMED
    parts = [_equal(group) for group in groups[:_MOST_NAMED]]
    count = sum(len(group) - 1 for group in groups)
    return f"{count:,}: {'; '.join(parts)}" + (f"; and {more:,} more" if more > 0 else "")


def _equal(group: Sequence[str]) -> str:
    more = len(group) - _MOST_NAMED
    shown = " = ".join(printable(path) for path in group[:_MOST_NAMED])
    return shown + (f" and {more:,} more" if more > 0 else "")

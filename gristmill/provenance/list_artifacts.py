"""List the artifacts of a data root by their records, and say whether each is current."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.families import Kind, kind_of_asset
from gristmill.inbox.listing import Account
from gristmill.inbox.marks import is_tombstones
from gristmill.inbox.readiness import GONE, READY, UNREAD, WAITS, Judgement
from gristmill.printable import printable
from gristmill.provenance import find_artifacts, inventory, unusual
from gristmill.provenance import record as provenance
from gristmill.provenance.raw_inputs import drop_of, name_in, raw_inputs
from gristmill.provenance.record import MALFORMED, Input, Record
from gristmill.untrusted.files import LinkRule

CURRENT: Final = "current"
FILES_CHANGED: Final = "files changed"
INPUTS_GONE: Final = "current (inputs gone)"
OTHER_CODE: Final = "other code"
INPUT_CHANGED: Final = "input changed"
RECORD_DAMAGED: Final = "record damaged"
MISSING: Final = "missing"

SaidOf = Callable[[Path, Record], tuple[str, str]]
"""Takes a data root and a record; returns the run that reported it, and what else was reported."""
StateOf = Callable[[Path], tuple[Judgement, Account | None]]
"""Takes a drop; returns its judgement, and its account where it has one."""


_COLUMNS: Final = 100
_LONGEST_NAME: Final = 34


@dataclass(frozen=True)
class Listed:
    """One artifact partition.

    asset, partition, built, code_version: as recorded; `built` is ISO 8601. None where the record
        is damaged, or for an asset without partitions.
    bytes: of its files on disk; one with several names in it counts once.
    rows: as the family counts them (`Kind.rows`), None where the record has no such count.
    sources: what it was made from, each `asset partition`, in the record's order.
    state: `current`, `files changed`, `current (inputs gone)`, `drop refused` (or `arriving`,
        `waits`, `unread`), `input changed`, `other code`, `record damaged` or `missing`; the first
        that holds, the last two before all others.
    why: the first file or input that is not as recorded; empty for a current artifact.
    notes: how many notes there are on it: of the laws, on counts, and on equal raw files.
    dagster: what was reported to Dagster and is not of this record, or failed; empty for nothing,
        or where no Dagster has looked at the artifacts of this asset.
    files: bytes of its files, by what tells each file on the disk from others; not in JSON.
    run: id of the run that built it, or found it current; empty where none is known.
    """

    folder: str
    asset: str | None
    partition: str | None
    rows: int | None
    bytes: int
    built: str | None
    code_version: str | None
    sources: tuple[str, ...]
    state: str
    why: str
    drops: tuple[str, ...] = ()
    notes: int = 0
    dagster: str = ""
    run: str = ""
    files: Mapping[tuple[int, int], int] = field(default_factory=dict, compare=False, repr=False)


def list_artifacts(
    root: Path,
    asset: str | None = None,
    state_of: Callable[[Path], StateOf] | None = None,
    said_of: SaidOf = lambda _root, _record: ("", ""),
) -> list[Listed]:
    """The artifacts below `root`, sorted by asset, partition and folder.

    root: a data root or a folder in one; its `drops` and the folders of builders are not searched.
    state_of: takes a data root, returns what judges its drops; default: nobody does, and files that
        were added to a drop are not seen.
    said_of: see `SaidOf`; default: nobody looks.

    A raw input counts as changed by its sha256, an artifact by its data version. That configs
    changed is not seen.
    """
    found = list(find_artifacts.artifacts(root))
    listing = _Listing(root, state_of, said_of, found)
    for item in found if state_of is not None else ():
        with suppress(*MALFORMED):  # a damaged record has a line of its own
            listing.note(item.record_path)
    listed = [listing.listed(item.folder, item.record_path) for item in found]
    listed += [
        Listed(gone.where, None, None, None, 0, None, None, (), MISSING, gone.found)
        for gone in inventory.missing(root.absolute())
    ]
    return sorted(
        (item for item in listed if asset is None or item.asset in (asset, None)),
        key=lambda item: (item.asset or "", item.partition or "", item.folder),
    )


def as_json(listed: Iterable[Listed]) -> str:
    """A JSON array with one object an artifact, whose names are the fields of `Listed`."""
    rows = [asdict(replace(item, files={})) for item in listed]
    for row in rows:
        del row["files"]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def lines(listed: Sequence[Listed]) -> Iterator[str]:
    """A table for the terminal of 100 columns, by asset; then the sums.

    A longer state continues in a line of its own.
    """
    titles = ("", "rows", "bytes", "built (UTC), run", "state")
    cells = [_cells(item) for item in listed]
    widths = [max(len(row[at]) for row in (titles, *cells)) for at in range(len(titles) - 1)]
    widths[0] = min(widths[0], _LONGEST_NAME)
    table = [_line(row, widths) for row in (titles, *cells)]
    yield table[0]
    numbered = zip(listed, table[1:], cells, strict=True)
    for asset, group in groupby(numbered, lambda each: each[0].asset or each[0].folder):
        yield printable(asset)
        for _, line, (*_, state) in group:
            yield line if len(line) <= _COLUMNS else line.removesuffix(state).rstrip()
            if len(line) > _COLUMNS:
                yield f"      {state}"
    yield _sums(listed)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, rows, size, built, state = cells
    first, second, third, fourth = widths
    numbers = f"{rows.rjust(second)}  {size.rjust(third)}  {built.ljust(fourth)}"
    return f"  {name.ljust(first)}  {numbers}  {state}".rstrip()


def _sums(listed: Sequence[Listed]) -> str:
    """How many artifacts there are, how many are current, bytes on disk, notes.

    A file that several artifacts have by hard links counts once.
    """
    files: dict[tuple[int, int], int] = {}
    for item in listed:
        files |= item.files
    size, notes = sum(files.values()), sum(item.notes for item in listed)
    current = sum(item.state == CURRENT for item in listed)
    said = f"{len(listed):,} artifact{'' if len(listed) == 1 else 's'}, {current:,} current"
    noted = f", {notes:,} note{'' if notes == 1 else 's'}: `gristmill verify` lists them"
    return f"{said}, {size:,} bytes on disk{noted if notes else ''}"


def _files(folder: Path, record: Record) -> dict[tuple[int, int], int]:
    """The bytes of the files of an artifact, by what tells each file from others."""
    files = {}
    for output in record.outputs:
        with suppress(OSError):  # the state says what is gone
            found = (folder / output.path).stat()
            files[found.st_dev, found.st_ino] = found.st_size
    return files


def _cells(item: Listed) -> tuple[str, ...]:
    noted = f" ({item.notes:,} note{'' if item.notes == 1 else 's'})" if item.notes else ""
    state = (f"{item.state}: {item.why}" if item.why else item.state) + noted
    cells = (
        item.partition or "",
        "" if item.rows is None else f"{item.rows:,}",
        f"{item.bytes:,}",
        f"{(item.built or '')[:16].replace('T', ' ')} {item.run[:8]}".rstrip(),
        "; ".join(filter(None, (state, item.dagster))),
    )
    return tuple(map(printable, cells))


class _Listing:
    """The artifacts of a listing, and the drops that they were made from.

    Each record is read once: an artifact is an input of several others.
    """

    def __init__(
        self,
        root: Path,
        state_of: Callable[[Path], StateOf] | None,
        said_of: SaidOf,
        found: Iterable[find_artifacts.Artifact],
    ) -> None:
        self._root, self._said_of = root, said_of
        self._states = None if state_of is None else cache(state_of)
        self._read: dict[Path, Record | GristmillError] = {}
        self._used: dict[str, set[str]] = {}
        self._across = unusual.AcrossPartitions(found, self._record)

    def note(self, path: Path) -> None:
        """Note what a partition was made from, by its record, before any state is asked for."""
        record = self._record(path)
        raw = (
            i.path
            for i in provenance.read_inputs(record, path)
            if i.path and i.data_version is None
        )
        self._used.setdefault(record.artifact, set()).update(raw)

    def listed(self, folder: Path, path: Path) -> Listed:
        """The artifact in a folder, with the record at `path`."""
        try:
            return self._described(folder, path)
        except MALFORMED as error:
            why, shown = " ".join(str(error).split()), folder.as_posix()
            return Listed(shown, None, None, None, 0, None, None, (), RECORD_DAMAGED, why)

    def _described(self, folder: Path, path: Path) -> Listed:
        record = self._record(path)
        inputs = provenance.read_inputs(record, path)
        above = find_artifacts.Artifact(folder.absolute(), path).data_root(record) or self._root
        state, why = self._state(above, folder, record, inputs)
        if state in (CURRENT, INPUT_CHANGED):
            of_drop, reason = self._drop_state(above, record, inputs)
            if of_drop != READY:
                state = {GONE: INPUTS_GONE, WAITS: WAITS}.get(of_drop, f"drop {of_drop}")
                why = reason
            elif reason and state == CURRENT:
                state, why = INPUT_CHANGED, reason
        kind = kind_of_asset(record.asset)
        if state == CURRENT and kind is not None and not kind.code.is_equal(record.code_digest):
            stated = str(kind.table.config.CODE_VERSION) if kind.table else record.code_version
            now = getattr(kind, "version", "") or stated
            state, why = OTHER_CODE, "the next build makes it again"
            if now != record.code_version:
                why = f"code version {record.code_version} -> {now}"
        used = dict.fromkeys(
            drop_of(above, above / str(item.path)) for item in inputs if item.is_of_drop
        )
        if (file := _kind(record).file_of(above, record.partition)) is not None:
            used[drop_of(above, file)] = None
        run, dagster = self._said_of(above, record)
        files = _files(folder, record)
        return Listed(
            folder=folder.as_posix(),
            asset=record.asset,
            partition=record.partition,
            rows=_kind(record).rows_of(record.counts),
            bytes=sum(files.values()),
            files=files,
            built=record.created.astimezone(UTC).isoformat(timespec="seconds"),
            code_version=record.code_version,
            sources=tuple(dict.fromkeys(_source(item) for item in inputs)),
            state=state,
            why=why,
            drops=tuple(
                drop.absolute().relative_to(above.absolute()).as_posix()
                for drop in used
                if drop is not None
            ),
            dagster=dagster,
            run=run,
            notes=unusual.count(
                find_artifacts.Artifact(folder, path), record, self._across.of(record.asset)
            ),
        )

    def _state(
        self, root: Path, folder: Path, record: Record, inputs: Iterable[Input]
    ) -> tuple[str, str]:
        """The state of one artifact, and why."""
        for output in record.outputs:
            if not provenance.is_untouched(folder / output.path, output.bytes, output.mtime_ns):
                return FILES_CHANGED, output.path
        changed = ""
        for item in inputs:
            if item.path is None or item.path in record.deleted_inputs:
                continue
            if item.data_version is None:
                drop = drop_of(root, root / item.path)
                if not (root / item.path if drop is None else drop).exists():
                    return INPUTS_GONE, item.path
                if not _is_same(root, item):
                    changed = changed or item.path
                continue
            try:
                version = self._data_version(root / item.path, item.partition)
            except MALFORMED:
                version = ""  # the damaged record has a line of its own
            if version is None:
                gone = _source(item)
                if inventory.is_unknown(root, item.path, item.partition):
                    gone += ", which the inventory does not name, either"
                return INPUTS_GONE, gone
            if version != item.data_version:
                changed = changed or _source(item)
        return (INPUT_CHANGED, changed) if changed else (CURRENT, "")

    def _drop_state(self, root: Path, record: Record, inputs: Sequence[Input]) -> tuple[str, str]:
        """The state of an artifact's first drop that is not ready, or what changed in its drops.

        Returns the state and the reason; (`waits`, for what) where the drop is ready and a build
        waits; (`ready`, what changed) where a drop has another file of the artifact's split, or its
        file says another build, and (`ready`, "") where nothing is to be said.
        """
        if self._states is None:
            return READY, ""
        own: dict[Path, set[str]] = {}
        raw = [item.path for item in inputs if item.path and item.data_version is None]
        raw = [path for path in raw if not is_tombstones(path)]
        for path in raw:
            if (drop := drop_of(root, root / path)) is not None:
                own.setdefault(drop, set()).add(name_in(drop, root / path))
        kind, change = _kind(record), ""
        if (file := kind.file_of(root, record.partition)) is not None:
            own.setdefault(drop := drop_of(root, file) or file, set())
            if self._states(root)(drop)[0].state == READY:
                change = kind.change_of(file, root, record.config, raw)
        for drop, names in own.items():
            judged, account = self._states(root)(drop)
            if change and judged.state == UNREAD:
                continue  # a file that no longer names the drop is the reason
            if judged.reason:
                return WAITS if judged.state == READY else judged.state, judged.reason
            new = self._new(root, record.artifact, drop, names, account)
            if new is not None:
                return READY, f"{new} is new"
        return READY, change

    def _new(
        self, root: Path, artifact: str, drop: Path, names: set[str], account: Account | None
    ) -> str | None:
        """The first file of a split of the artifact that none of its partitions was made from."""
        for taken in account.taken.values() if account is not None else ():
            if not names.isdisjoint(taken):
                for name in taken:
                    path = drop if name == drop.name and drop.is_file() else drop / name
                    relative = path.relative_to(root).as_posix()
                    if relative not in self._used.get(artifact, ()):
                        return relative
        return None

    def _record(self, path: Path) -> Record:
        """The record at `path`. Raises GristmillError where it cannot be read."""
        if path not in self._read:
            try:
                self._read[path] = provenance.read_record(path)
            except GristmillError as error:
                self._read[path] = error
        record = self._read[path]
        if isinstance(record, GristmillError):
            raise record
        return record

    def _data_version(self, folder: Path, partition: str | None) -> str | None:
        """Data version of the artifact partition in `folder`, None where there is none."""
        for shared in (False, True):
            path = provenance.record_path(folder, partition, shared)
            if path in self._read or path.exists():
                return self._record(path).data_version
        return None


def _kind(record: Record) -> Kind:
    return kind_of_asset(record.asset) or Kind(record.asset)


def _source(item: Input) -> str:
    return " ".join(name for name in (item.asset, item.partition) if name) or item.path or ""


def _is_same(root: Path, item: Input) -> bool:
    """Whether a raw file has the recorded bytes; one with another time is hashed, once."""
    path = root / str(item.path)
    if provenance.is_untouched(path, item.bytes, item.mtime_ns):
        return True
    try:
        if path.stat().st_size != item.bytes:
            return False
        (now,) = raw_inputs(root, [path], str(item.asset), None, {}, LinkRule(True, ("/",)))
    except (GristmillError, OSError):
        return False
    return now.sha256 == item.sha256

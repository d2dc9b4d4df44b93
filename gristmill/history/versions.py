"""The versions of an artifact: those that are kept in `.gristmill/history`, and the published one.

Source: docs/history.md#what-is-kept.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill import families
from gristmill.contract import GristmillError
from gristmill.history.rows import ROWS, Kept, key_of, scan, write
from gristmill.layout import HISTORY, WORK
from gristmill.provenance import INPUTS, RECORD, Input, Record, read_inputs, read_record
from gristmill.provenance.find_artifacts import Artifact, artifacts, artifacts_in, readable
from gristmill.provenance.inventory import Entry
from gristmill.provenance.record import MALFORMED, changed, changed_inputs, inputs_path
from gristmill.settings.fields import NO_EFFECT, fields_with
from gristmill.settings.tables import FILE, HISTORY_TABLE, HistorySettings
from gristmill.untrusted.toml import read_toml

if TYPE_CHECKING:
    import polars as pl

NEW: Final = ".new"
"""Where a version is made, and where one goes to be removed; a kill leaves it to the next build."""
_VERSION: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Version:
    """One version; folder: of what is kept of it, or of the published artifact (not `is_kept`)."""

    root: Path
    entry: Entry
    folder: Path
    record: Record
    is_kept: bool = True

    @property
    def inputs(self) -> list[Input]:
        """What it was made from. Raises GristmillError where the list is damaged."""
        path = self.folder / RECORD if self.is_kept else self.entry.record(self.root)
        return read_inputs(self.record, path)

    @contextmanager
    def rows(self) -> Iterator[pl.LazyFrame]:
        """Its rows, which are read within. Raises GristmillError without any, or damaged ones."""
        import polars as pl

        with ExitStack() as stack:
            if not self.is_kept:
                if (history := history_of(self.record)) is None:
                    raise GristmillError(
                        f"{self.record.asset}: its artifacts have no rows that a history names; "
                        "`gristmill log` has what its records say"
                    )
                made = stack.enter_context(tempfile.TemporaryDirectory(prefix="gristmill-history-"))
                path = Path(made, ROWS)
                write(path, history(self.folder, self.record), key_of(self.root))
            elif not (path := self.folder / ROWS).is_file():
                raise GristmillError(f"{self.folder}: no rows were kept of this version")
            try:
                yield scan(path, key_of(self.root))
            except (OSError, ValueError, pl.exceptions.PolarsError) as error:
                raise _damaged(path, str(error)) from error


def _damaged(path: Path, reason: str) -> GristmillError:
    reason = " ".join(reason.split())[:300]
    return GristmillError(
        f"{path}: what was kept of this version is damaged ({reason}): remove its folder"
    )


def history_of(record: Record) -> Callable[[Path, Any], Iterable[Kept]] | None:
    """What gives the rows of an artifact as its family names them; None where it names none."""
    kind = families.kind_of_asset(record.asset)
    return None if kind is None else kind.history


def settings_of(root: Path) -> HistorySettings:
    """The table `[history]` of the data root. Raises BadInput where it is wrong."""
    file = root / FILE
    if not file.is_file():
        return HistorySettings()
    real = file.resolve()
    given = read_toml(real, root=real.parent).get(HISTORY_TABLE.name, {})
    return HistorySettings(**HISTORY_TABLE.checked(file, given))


def place_of(root: Path, entry: Entry) -> Path:
    """The folder of the kept versions of an artifact partition, which need not exist."""
    return root / WORK / HISTORY / entry.name


def kept(root: Path, entry: Entry) -> tuple[list[Version], list[str]]:
    """The kept versions of an artifact partition, the oldest first; and what is damaged."""
    found, wrong = list[Version](), list[str]()
    for folder in filter(_is_version, place_of(root, entry).glob("*")):
        try:
            found.append(read(root, folder))
        except GristmillError as error:
            wrong.append(str(error))
    return sorted(found, key=lambda each: each.record.created), wrong


def _is_version(folder: Path) -> bool:
    return _VERSION.fullmatch(folder.name) is not None


def every(root: Path, entry: Entry) -> tuple[list[Version], list[str]]:
    """All versions of an artifact partition, the published one last; and what is damaged."""
    found, wrong = kept(root, entry)
    try:
        now = published(root, entry)
    except GristmillError as error:
        return found, [*wrong, str(error)]
    if now is None:
        return found, wrong
    same = now.record.data_version
    return [*(each for each in found if each.record.data_version != same), now], wrong


def lines_of(root: Path, entry: Entry) -> tuple[list[dict[str, Any]], list[str]]:
    """All versions, the newest first, as commands and pages show them; and what is damaged.

    Each has `data_version`, `created` (ISO 8601), `rows`, `published`, and `why`: what differs from
    the version before it.
    """
    listed, wrong = every(root, entry)
    found = []
    for before, each in zip([None, *listed], listed, strict=False):
        record, kind = each.record, families.kind_of_asset(each.record.asset)
        line: dict[str, Any] = {"data_version": record.data_version}
        line |= {"created": record.created.isoformat()}
        line |= {"rows": kind.rows_of(record.counts) if kind else None}
        line |= {"published": not each.is_kept}
        found.append(line | {"why": [] if before is None else reasons(before, each)})
    return found[::-1], wrong


def read(root: Path, folder: Path) -> Version:
    """The kept version in a folder. Raises GristmillError where it is damaged."""
    try:
        record = read_record(folder / RECORD)
    except MALFORMED as error:
        raise _damaged(folder, str(error)) from error
    if record.data_version != folder.name or record.digest != record.computed_digest():
        raise _damaged(folder, "its record is another one")
    place = folder.parent.relative_to(root / WORK / HISTORY).as_posix()
    partition = place.removeprefix(f"{record.artifact}@") if place != record.artifact else None
    return Version(root, Entry(record.artifact, partition), folder, record)


def published(root: Path, entry: Entry) -> Version | None:
    """The published version of an artifact partition; None where there is none."""
    path = entry.record(root)
    if not path.exists():
        return None
    return Version(root, entry, root / entry.artifact, read_record(path), is_kept=False)


def write_into(folder: Path, item: Artifact, record: Record, root: Path) -> list[str]:
    """Write what is kept of a version into a new folder: its record, its rows, small files.

    Returns a note where the published artifact cannot be read, whatever its damage: it is replaced
    all the same. Raises OSError where the folder cannot be written.
    """

    def rows(history: Callable[[Path, Any], Iterable[Kept]]) -> Iterator[Kept]:
        try:
            yield from history(item.folder, record)
        except OSError as error:
            raise GristmillError(str(error)) from error

    folder.mkdir(parents=True)
    kind = families.kind_of_asset(record.asset)
    copies = {item.record_path: RECORD, **{item.folder / n: n for n in (kind.kept if kind else ())}}
    if record.inputs_file is not None:
        copies[inputs_path(item.record_path)] = INPUTS
    for source, name in copies.items():
        if source.is_file():
            shutil.copyfile(source, folder / Path(name).name)
    try:
        if (history := history_of(record)) is not None:
            write(folder / ROWS, rows(history), key_of(root))
        return []
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001  no damage of what is replaced stops a build
        (folder / ROWS).unlink(missing_ok=True)
        return [f"the rows of the replaced version were not kept, as they cannot be read: {error}"]


def reasons(old: Version, new: Version) -> list[str]:
    """Why a version follows another one: what differs between their records."""
    before, now, found = old.record, new.record, list[str]()
    table = getattr(families.kind_of_asset(now.asset), "table", None)
    passed_over = fields_with(table.config, NO_EFFECT) if table else ()
    if before.code_version != now.code_version:
        found.append(f"code version {before.code_version} -> {now.code_version}")
    config = {name: value for name, value in now.config.items() if name not in passed_over}
    found += changed("config", before.config, config)
    try:
        found += changed_inputs(old.inputs, new.inputs)
    except GristmillError as error:
        found.append(f"inputs not known: {error}")
    if before.tokenizer != now.tokenizer:
        found.append("vocabulary changed")
    code = families.code_of_asset(now.asset)
    libraries = {name: now.libraries.get(name, "none") for name in code.libraries}
    found += changed("libraries", before.libraries, libraries)
    if before.code_digest != now.code_digest:
        found.append("code changed")
    if now.replaced is not None and now.replaced.data_version == before.data_version:
        found.append(f"asked: {now.replaced.why}")
    return found


def found(root: Path, name: str, partition: str | None = None) -> Entry:
    """The artifact partition that a person names; also one that was removed, by what is kept of it.

    name: its path, PATH@PARTITION, or an asset. partition: its key; None (the default) where there
    is only one. Raises GristmillError where there is none, or several.
    """
    text, _, own = name.partition("@")
    wanted, path = partition or own or None, Path(text).absolute()
    if not path.is_relative_to(root) or path == root:
        path = root / text
    artifact = path.relative_to(root).as_posix() if path.is_relative_to(root) else text
    known = {Entry.of(root, item) for item in artifacts_in(path)}
    above = place_of(root, Entry(artifact))
    known |= {
        Entry(artifact, folder.name.partition("@")[2] or None)
        for folder in (above, *above.parent.glob(f"{above.name}@*"))
        if any(map(_is_version, folder.glob("*")))
    }
    listed = {each for each in known if wanted in (None, each.partition)}
    if not known:
        listed = {
            Entry.of(root, item)
            for item, record, _ in readable(artifacts(root))
            if record.asset == text and wanted in (None, record.partition)
        }
    if len(listed) == 1:
        return listed.pop()
    if not listed:
        raise GristmillError(f"{name}: no artifact is here, and nothing is kept of one")
    names = ", ".join(sorted(each.name for each in listed)[:20])
    raise GristmillError(f"{name}: several artifacts have this name: name one of {names}")

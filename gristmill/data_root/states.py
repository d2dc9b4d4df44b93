"""The states of a data root's drops, each judged once, and what was reported of its artifacts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from gristmill import families
from gristmill.contract import GristmillError, Violation
from gristmill.data_root import DataRoot
from gristmill.families import kind_of_asset
from gristmill.inbox import READY, REFUSED, Judgement, Standing, present_drops
from gristmill.inbox.listing import Account, column_lines
from gristmill.layout import DROPS, WORK
from gristmill.provenance import Record, find_artifacts, inventory
from gristmill.provenance.list_artifacts import CURRENT, Listed, list_artifacts
from gristmill.provenance.raw_inputs import drop_of
from gristmill.settings.fields import did_you_mean, shown


class DropStates:
    """What the drops of a data root are now. Nothing is hashed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lake = DataRoot(root)
        self._known: dict[Path, tuple[Judgement, Account | None]] = {}

    def of(self, drop: Path) -> tuple[Judgement, Account | None]:
        """The judgement of a drop, and its account; None where it has none.

        drop: an entry of an inbox. What is in no inbox, as a vocabulary, is ready.
        """
        if drop not in self._known:
            self._known[drop] = self._judged(drop)
        return self._known[drop]

    def idle(self, listed: Sequence[Listed]) -> Iterator[Standing]:
        """Yield the drops that nothing `listed` is built from; a key is the path below `drops/`."""
        built = {drop for item in listed for drop in item.drops}
        is_known = all(item.asset for item in listed)  # a damaged record does not say its drops
        gone: set[str] | None = None
        for inbox, kind in families.inboxes().items():
            found = present_drops(self._lake.inbox(inbox), self._lake.asked(inbox), kind.shape)
            for drop in found.out_of_order:
                yield Standing(f"{inbox}/{drop.key}", drop.state, drop.since, drop.reason)
            for each in found.arrivals if is_known else ():
                if f"{DROPS}/{inbox}/{each.path.name}" not in built:
                    gone = self._removed() if gone is None else gone
                    if each.key not in gone:
                        rule = "nothing is built of it: build it"
                        yield Standing(f"{inbox}/{each.key}", READY, 0, rule)

    def _removed(self) -> set[str]:
        """Keys of what a pool took in, or a person removed: nothing is owed to their drops."""
        return {
            (entry.partition or entry.artifact).rpartition("/")[2].partition("__")[0]
            for entry, state in inventory.entries(self._lake.root)
            if state is inventory.State.REMOVED
        }

    def is_taken(self, drop: Path) -> bool:
        """Whether something was built from a drop that is ready, and all of that is current."""
        below = f"{drop.relative_to(self._lake.root).as_posix()}"
        listed = list_artifacts(self._lake.root, state_of=lambda _: self.of)
        states = {item.state for item in listed if below in item.drops}
        return states == {CURRENT}

    def _judged(self, drop: Path) -> tuple[Judgement, Account | None]:
        inbox = "/".join(drop.relative_to(self._lake.root / DROPS).parts[:-1])
        try:
            shape = families.drop_kind(inbox).shape
        except KeyError:
            return Judgement(READY), None
        if drop.name in shape.reserved:
            return Judgement(READY), None
        made = list[Account]()
        found = self._lake.judged(inbox, drop, made)
        return found, made[-1] if made else None


def account_of(root: Path, name: str) -> Iterator[str]:
    """Yield what becomes of the files and columns of a drop, a line each.

    root: the data root. name: of the drop below `drops/`, or its path. Of a drop that something is
    built from, the records say it, below a line for each artifact; else the first rows of its
    files. Raises GristmillError where there is no such drop, and where it is refused.
    """
    lake = DataRoot(root)
    place = next(
        (path for path in (lake.root / DROPS / name, Path(name).absolute()) if path.exists()), None
    )
    drop = drop_of(lake.root, place) if place and place.is_relative_to(lake.root) else None
    if drop is None or drop != place or drop.parent.name == DROPS:
        keys = [f"{i}/{key}" for i in families.inboxes() for key in lake.taken(i)]
        here = f"{lake.root / DROPS}: has no drop {shown(name)}{did_you_mean(name, keys)}"
        raise GristmillError(f"{here}: name one as reasoning/gsm8k")
    items, is_built = find_artifacts.artifacts(lake.root), False
    for _, record, inputs in find_artifacts.readable(items):
        raw = [str(given.path) for given in inputs if given.is_of_drop]
        if record.account and any(drop_of(lake.root, lake.root / path) == drop for path in raw):
            is_built = True
            yield " ".join(filter(None, (record.asset, record.partition)))
            yield from (f"  {line}" for line in record.account.lines)
    if is_built:
        return
    judged, account = DropStates(root).of(drop)
    if account is None:
        raise GristmillError(f"{drop}: {judged.line}")
    yield f"{drop.relative_to(lake.root).as_posix()}, by its first rows"
    columns = column_lines(lake.columns(drop, account))
    yield from (f"  {line}" for line in (*account.lines, *columns))


def of_artifacts(path: Path) -> tuple[list[Violation], list[str]]:
    """What is wrong with the drops that artifacts were made from, and notes on them."""
    states: dict[Path, DropStates] = {}
    drops: dict[Path, Path] = {}
    changes: dict[Path, str] = {}
    items = find_artifacts.artifacts(path.absolute())
    for item, record, inputs in find_artifacts.readable(items):
        if (root := item.data_root(record)) is None:
            continue
        raw = [given.path for given in inputs if given.path and given.data_version is None]
        drops |= {drop: root for path in raw if (drop := drop_of(root, root / path)) is not None}
        kind = families.kind_of_asset(record.asset)
        if kind is not None and (file := kind.file_of(root, record.partition)) is not None:
            drops[drop := drop_of(root, file) or file] = root
            change = kind.change_of(file, root, record.config, raw)
            changes[drop] = changes.get(drop) or change
    violations, notes = [], []
    for drop, root in drops.items():
        found, _ = states.setdefault(root, DropStates(root)).of(drop)
        if found.state == REFUSED:
            violations.append(Violation("drop", str(drop), f"is refused: {found.reason}"))
        elif found.reason:
            notes.append(f"{drop.relative_to(root)}: {found.line}")
        elif changes.get(drop):
            notes.append(changes[drop])
    return violations, notes


FILE: Final = "verdicts.db"
"""Its name, in `.gristmill` of the data root."""
BUILT: Final = "built"
"""Name of the check whose verdicts are those of builds: it outlives what was published."""
TABLES: Final = """
create table if not exists assets (asset text primary key) without rowid;
create table if not exists artifacts (asset text, subject text, record text, data_version text,
  stamp integer, primary key (asset, subject)) without rowid;
create table if not exists reported (asset text, subject text, data_version text, run text,
  primary key (asset, subject)) without rowid;
create table if not exists verdicts (asset text, name text, subject text, data_version text,
  problem text, cure text, warns integer, since text,
  primary key (asset, name, subject)) without rowid;
"""
"""Its tables. `since` is when a problem was found first, in UTC; `run` the id of the run that
reported an artifact."""


@dataclass(frozen=True)
class Report:
    """What was reported of one artifact.

    data_version: empty if none is known.
    run: id of the run that built it, or found it current; empty where no run did.
    failed_since: time in UTC of the first build that failed since then; empty for none.
    red: the checks that found an error in it, `built` apart, each with the data version that it
        looked at, which is empty if it holds for any.
    """

    data_version: str = ""
    run: str = ""
    failed_since: str = ""
    red: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Reports:
    """What was reported of the artifacts of a data root, by whichever instance did so last.

    assets: those of which an artifact without a report was not reported. Of others nobody has
        asked the events yet.
    by_key: by asset and partition (empty without).
    """

    assets: frozenset[str] = frozenset()
    by_key: Mapping[tuple[str, str], Report] = field(default_factory=dict)

    def differs(self, asset: str, subject: str, data_version: str) -> str:
        """Returns what is not as a reader of a record expects, in words; empty for nothing.

        asset, data_version: of the record. subject: its partition, as of `subject_of`.
        """
        said, report = [], self.by_key.get((asset, subject), Report())
        if report.data_version != data_version and (report.data_version or asset in self.assets):
            said.append("not reported to Dagster: materialize it")
        if report.failed_since:
            said.append(f"its build fails since {report.failed_since} UTC")
        red = (name for name, looked_at in report.red if looked_at in ("", data_version))
        return "; ".join([*said, *(f"the check {name} found an error" for name in red)])


def subject_of(record: Record) -> str:
    """Returns the partition that is reported: none of an asset without any, whatever a record says.

    A folder that several vocabularies share has records by name.
    """
    kind = kind_of_asset(record.asset)
    return "" if kind is not None and not kind.partitions else record.partition or ""


def comparer() -> Callable[[Path, Record], tuple[str, str]]:
    """Returns a function that says which run reported an artifact, and what is not as its record.

    It takes a data root, whose file it reads once, and the record. Of an artifact that no run
    reported, the run is empty; so is the other text for nothing, and where no Dagster has looked at
    the artifacts of the asset.
    """
    known = cache(reports)

    def said_of(root: Path, record: Record) -> tuple[str, str]:
        found, key = known(root.absolute()), (record.asset, subject_of(record))
        report = found.by_key.get(key, Report())
        run = report.run if report.data_version == record.data_version else ""
        return run, found.differs(*key, record.data_version)

    return said_of


def verdicts(root: Path, asset: str, subject: str, data_version: str) -> list[tuple[str, str, int]]:
    """Returns the checks that looked at an artifact: name, problem or "", whether it only warns.

    Nothing where no file says it. root: the data root. subject: as of `subject_of`.
    """
    path = root.absolute() / WORK / FILE
    asked = (
        "select name, coalesce(problem, ''), warns from verdicts where asset = ? and subject = ?"
    )
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as file:
            of_any = f"{asked} and coalesce(data_version, '') in ('', ?) order by name"
            return list(file.execute(of_any, (asset, subject, data_version)))
    except sqlite3.Error:
        return []


def reports(root: Path) -> Reports:
    """Returns what was reported of the artifacts of a data root; nothing where no file says it."""
    path = root.absolute() / WORK / FILE
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as file:
            assets = frozenset(asset for (asset,) in file.execute("select asset from assets"))
            rows = file.execute("select asset, subject, data_version, run from reported")
            known = {(asset, subject): (version, run) for asset, subject, version, run in rows}
            verdicts = file.execute(
                "select asset, subject, name, data_version, since from verdicts "
                "where problem is not null and not coalesce(warns, 0) order by name"
            ).fetchall()
    except sqlite3.Error:
        return Reports()  # the next run begins it again
    failed, red = dict[tuple[str, str], str](), dict[tuple[str, str], list[tuple[str, str]]]()
    for asset, subject, name, version, since in verdicts:
        if name == BUILT:
            failed[asset, subject] = since or "a time that is not known"
        else:
            red.setdefault((asset, subject), []).append((name, version))
    by_key = {
        key: Report(*known.get(key, ("", "")), failed.get(key, ""), tuple(red.get(key, ())))
        for key in {*known, *failed, *red}
    }
    return Reports(assets, by_key)

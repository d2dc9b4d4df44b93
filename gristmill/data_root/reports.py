"""What was reported to Dagster of the artifacts of a data root, read without Dagster.

The file is written with the events: see `assets/checking/verdict_file.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from gristmill.layout import WORK
from gristmill.provenance import Record

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

    data_version: empty if none was ever reported.
    run: id of the run that built it, or found it current; empty where no run did.
    failed_since: time in UTC of the first build that failed since then; empty for none.
    red: names of the checks that found an error in it, `built` apart.
    """

    data_version: str = ""
    run: str = ""
    failed_since: str = ""
    red: tuple[str, ...] = ()

    def differs(self, data_version: str) -> str:
        """Returns what is not as a reader of the record expects, in words; empty for nothing.

        data_version: of the record.
        """
        said = []
        if self.data_version != data_version:
            said.append("not reported to Dagster: materialize it")
        if self.failed_since:
            said.append(f"its build fails since {self.failed_since} UTC")
        return "; ".join([*said, *(f"the check {name} is red" for name in self.red)])


def comparer() -> Callable[[Path, Record], str]:
    """Returns a function that says what was reported to Dagster and differs from a record.

    It takes a data root, whose file it reads once, and the record; it returns an empty text for
    nothing, and where no Dagster has looked at the data root.
    """
    known = cache(reports)

    def said_of(root: Path, record: Record) -> str:
        found = known(root.absolute())
        key = (record.asset, record.partition or "")
        return "" if found is None else found.get(key, Report()).differs(record.data_version)

    return said_of


def reports(root: Path) -> dict[tuple[str, str], Report] | None:
    """Returns the reports by asset and partition (empty without); None if there is no file of them.

    root: the data root. An artifact that is not among the keys was not reported.
    """
    path = root.absolute() / WORK / FILE
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as file:
            rows = file.execute("select asset, subject, data_version, run from reported")
            known = {(asset, subject): (version, run) for asset, subject, version, run in rows}
            verdicts = file.execute(
                # One on another data version than the reported one does not count.
                "select asset, subject, name, since from verdicts v left join reported r using "
                "(asset, subject) where problem is not null and not coalesce(warns, 0) and "
                "v.data_version in ('', r.data_version) order by name"
            ).fetchall()
    except sqlite3.Error:
        return None  # the next run begins it again
    failed, red = dict[tuple[str, str], str](), dict[tuple[str, str], list[str]]()
    for asset, subject, name, since in verdicts:
        if name == BUILT:
            failed[asset, subject] = since or "a time that is not known"
        else:
            red.setdefault((asset, subject), []).append(name)
    return {
        key: Report(
            *known.get(key, ("", "")),
            failed_since=failed.get(key, ""),
            red=tuple(red.get(key, ())),
        )
        for key in {*known, *failed, *red}
    }

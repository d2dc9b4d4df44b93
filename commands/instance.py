"""Where an instance keeps its state, and whether it answers as when it was opened, without Dagster.

Opening an instance takes seconds, nearly all of them for the import of Dagster. What opened it
leaves a note of the `dagster.yaml` that Dagster then took. While that file and Dagster are the same
and its history is in SQLite, asking the three databases is enough to know that it opens again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import yaml

from gristmill.contract import GristmillError

CHECKOUT = Path(__file__).resolve().parent.parent
CONFIG: Final = "dagster.yaml"
STATE: Final = ".dagster"
HISTORIES: Final = ("storage", "run_storage", "event_log_storage", "schedule_storage")
"""The keys of a `dagster.yaml` that say where the history is."""
_NOTE: Final = "opened.sha256"
# What is asked of each database below the folder of the history.
_ASKED: Final = {
    "history/runs.db": "select count(*) from runs",
    "history/runs/index.db": "select 1 from event_logs limit 1",
    "schedules/schedules.db": "select 1 from job_ticks limit 1",
}


def dagster_home() -> Path | None:
    """Returns the folder that DAGSTER_HOME names; None where it is not set.

    Raises GristmillError for one that is no folder: it is not made, since the name may be wrong.
    """
    if not (named := os.environ.get("DAGSTER_HOME")):
        return None
    home = Path(os.path.expanduser(named))  # noqa: PTH111  as Dagster; Path raises without a home
    if not home.is_absolute() or not home.is_dir():
        what = "is no folder: make it" if home.is_absolute() else "must be an absolute path"
        raise GristmillError(f"DAGSTER_HOME={named}: {what}")
    return home


def state_folder(checkout: Path, home: Path | None) -> Path:
    """Returns where the instance of a DAGSTER_HOME keeps its state, as far as is known here."""
    if home is None or home.resolve() == checkout.resolve():
        return checkout / STATE
    return home


def note_opened(checkout: Path, home: Path | None) -> None:
    """Note that Dagster has opened an instance. Nothing is noted where it cannot be written."""
    note = state_folder(checkout, home) / _NOTE
    with suppress(OSError):
        digest = _digest((home or checkout) / CONFIG)
        if not note.is_file() or note.read_text() != digest:
            note.write_text(digest)


def history_that_opens(checkout: Path, home: Path | None) -> Path | None:
    """Returns the folder of a history in SQLite that opens, as a note of it and its databases say.

    checkout: the checkout, whose instance it is without a home.
    home: as `dagster_home` returns it.

    None says nothing: Dagster has to open it to know.
    """
    config = (home or checkout) / CONFIG
    try:
        if (state_folder(checkout, home) / _NOTE).read_text() != _digest(config):
            return None
        folder = _history(yaml.safe_load(config.read_bytes()), checkout, config.parent)
        if folder is None or not all(_is_whole(folder / name, sql) for name, sql in _ASKED.items()):
            return None
        return folder
    except (OSError, ValueError, yaml.YAMLError, sqlite3.Error):
        return None


def _history(settings: Any, checkout: Path, home: Path) -> Path | None:
    """The folder of the databases of SQLite, None where the history may be elsewhere."""
    match settings:
        case {"storage": {"sqlite": {"base_dir": str(named)}}}:
            return checkout / named
        case dict() if not settings.keys() & set(HISTORIES):
            return home
    return None


def _is_whole(database: Path, query: str) -> bool:
    """Whether a database has one revision, as Dagster needs it, and gives rows."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
        revisions = connection.execute("select version_num from alembic_version").fetchall()
        connection.execute(query).fetchall()
    return len(revisions) == 1


def _digest(config: Path) -> str:
    """Digest of what decides whether Dagster takes a `dagster.yaml`. Raises OSError without one."""
    said = f"{metadata.version('dagster')}\0{config.resolve()}\0".encode()
    return hashlib.sha256(said + config.read_bytes()).hexdigest()

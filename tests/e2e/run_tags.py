"""Tags of runs that Dagster's server does not show, read from where the instance keeps them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

_QUERY = "SELECT value FROM run_tags WHERE run_id = {0} AND key = {0}"


def tag(checkout: Path, run: str, key: str) -> str | None:
    """The value of a tag; None where the run does not have it. Quick, for runs that soon end."""
    storage = yaml.safe_load((checkout / "dagster.yaml").read_text())["storage"]
    if "postgres" in storage:
        row = _in_postgres(storage["postgres"]["postgres_url"], run, key)
    else:
        file = checkout / ".dagster/storage/history/runs.db"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            row = database.execute(_QUERY.format("?"), (run, key)).fetchone()
    return None if row is None else str(row[0])


def _in_postgres(address: str, run: str, key: str) -> Any:
    import psycopg2

    with closing(psycopg2.connect(address.replace("+psycopg2", ""))) as server:
        cursor = server.cursor()
        cursor.execute(_QUERY.format("%s"), (run, key))
        return cursor.fetchone()

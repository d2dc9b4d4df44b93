"""One line of JSON about the Dagster instance, for `gristmill doctor`.

A process of its own runs this (`python -m commands.state`): a database may hang. Dagster is
imported where an instance in SQLite has changed since it was opened, or does not answer.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Final

from commands.instance import CHECKOUT, dagster_home, history_that_opens
from gristmill.contract import GristmillError

_MOST: Final = 300


def instance_state() -> dict[str, str | None]:
    """`storage`: the class that keeps runs; `refusal`: why it does not answer, None where it does.

    The instance is that of DAGSTER_HOME, else that of the current folder.
    """
    with suppress(GristmillError):
        if history_that_opens(CHECKOUT, dagster_home()):
            return {"storage": "SqliteRunStorage", "refusal": None}
    from commands.checkout import open_instance

    storage = "unknown"
    try:
        with open_instance(begin=False) as instance:
            storage = type(instance.run_storage).__name__
            instance.get_runs_count()
    except Exception as error:  # noqa: BLE001 - whatever a storage raises is the finding
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return {"storage": storage, "refusal": text[:_MOST]}
    return {"storage": storage, "refusal": None}


def main() -> None:
    """Print the state of the instance."""
    os.chdir(CHECKOUT)
    sys.stdout.write(json.dumps(instance_state()) + "\n")


if __name__ == "__main__":
    main()

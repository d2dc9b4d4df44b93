"""What a run costs with the instance in Postgres, against the embedded one.

One run packs many tiny drops, in turn on an instance in files and on one in a database. It prints
the median seconds of both and their ratio.

    python -m bench.instance_storage postgresql+psycopg2://USER@/DATABASE?host=FOLDER
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import yaml

from bench import kit
from gristmill.macroxue.samples import write_drop


def run(folder: Path, drops: int, address: str | None) -> float:
    """Seconds of a run that packs `drops` drops on an instance of its own, or at an address."""
    home, data = folder / "home", folder / "data"
    home.mkdir()
    blocks = yaml.safe_load((kit.CHECKOUT / "dagster.yaml").read_text())
    if address is not None:
        blocks["storage"] = {"postgres": {"postgres_url": address}}
    text = yaml.safe_dump(blocks).replace(": .dagster/", f": {home}/")
    (home / "dagster.yaml").write_text(text)
    for number in range(drops):
        write_drop(data / f"drops/macroxue/d{number}", seed=number, games=1, max_moves=20, depth=6)
    places = {"GRISTMILL_DATA": str(data), "DAGSTER_HOME": str(home)}
    words = ("-m", "gristmill.cli", "materialize", "macroxue/pack")
    return kit.spent(lambda: kit.python(words, places), time.perf_counter)


def storages(given: kit.Given) -> None:
    times: dict[str | None, list[float]] = {None: [], given.address: []}
    for number in range(given.rounds):
        turns = list(times)
        for address in turns if number % 2 else reversed(turns):
            with tempfile.TemporaryDirectory() as folder:
                times[address].append(run(Path(folder), given.drops, address))
    files, database = map(median, times.values())
    what = f"a run of {given.drops} partitions: in files {files:.1f} s, in Postgres {database:.1f}"
    kit.bounded(f"{what} s, ratio", database / files)


if __name__ == "__main__":
    kit.main(__doc__, storages, address={"nargs": None}, drops=50, rounds=3)

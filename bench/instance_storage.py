"""What a run costs with the instance in Postgres, against the embedded one.

One run packs many tiny drops, in turn on an instance in files and on one in a database. It prints
the median seconds of both and their ratio.

    python -m bench.instance_storage postgresql+psycopg2://USER@/DATABASE?host=FOLDER
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from bench.servers import CHECKOUT
from gristmill.macroxue.samples import write_drop


def run(folder: Path, drops: int, address: str | None) -> float:
    """Seconds of a run that packs `drops` drops on an instance of its own, or at an address."""
    home, data = folder / "home", folder / "data"
    home.mkdir()
    blocks = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    if address is not None:
        blocks["storage"] = {"postgres": {"postgres_url": address}}
    text = yaml.safe_dump(blocks).replace(": .dagster/", f": {home}/")
    (home / "dagster.yaml").write_text(text)
    for number in range(drops):
        write_drop(data / f"drops/macroxue/d{number}", seed=number, games=1, max_moves=20, depth=6)
    places = {"GRISTMILL_DATA": str(data), "DAGSTER_HOME": str(home)}
    words = [sys.executable, "-m", "gristmill.cli", "materialize", "macroxue/pack"]
    before = time.perf_counter()
    done = subprocess.run(
        words, cwd=CHECKOUT, env=os.environ | places, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return time.perf_counter() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--drops", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    times: dict[str | None, list[float]] = {None: [], given.address: []}
    for number in range(given.rounds):
        turns = list(times)
        for address in turns if number % 2 else reversed(turns):
            with tempfile.TemporaryDirectory() as folder:
                times[address].append(run(Path(folder), given.drops, address))
    files, database = (statistics.median(seconds) for seconds in times.values())
    print(
        f"a run of {given.drops} partitions: in files {files:.1f} s | in Postgres {database:.1f} s "
        f"| ratio {database / files:.2f}"
    )


if __name__ == "__main__":
    main()

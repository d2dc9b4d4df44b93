"""What Dagster runs cost in this project against a bare one of a single trivial asset.

Run from the checkout: python -m bench.dagster_overhead [--rounds N] [--only PART]. Three
comparisons, each with its required ratio or bound; status 1 where one is missed:
a single-partition run launched as the UI launches it, a batch of partitions in
one run, and the loading of the code location after `import dagster`. The bare
project has Dagster's own launcher.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import yaml

from bench import kit
from bench.servers import Server, copy_checkout, plain_environment

BARE = """
import dagster as dg

parts = dg.DynamicPartitionsDefinition(name="parts")

@dg.asset(partitions_def=parts, code_version="1")
def trivial():
    return dg.MaterializeResult(metadata={"rows": 1})

defs = dg.Definitions(assets=[trivial], executor=dg.in_process_executor)
"""


@contextmanager
def servers(scratch: Path) -> Iterator[tuple[Server, Server]]:
    """Ours, in a copy of the checkout with a state of its own, and a bare project."""
    copy_checkout(scratch / "ours")
    settings = yaml.safe_load((kit.CHECKOUT / "dagster.yaml").read_text())
    del settings["run_launcher"]
    (scratch / "bare").mkdir()
    (scratch / "bare/definitions.py").write_text(BARE)
    (scratch / "bare/workspace.yaml").write_text((kit.CHECKOUT / "workspace.yaml").read_text())
    (scratch / "bare/dagster.yaml").write_text(yaml.safe_dump(settings))
    data, ours = str(scratch / "data"), str(scratch / "ours")
    environment = {"GRISTMILL_DATA": data, "PYTHONPATH": ours}
    started = [
        Server(scratch / "ours", "gristmill", environment),
        Server(scratch / "bare", "gristmill", {}),
    ]
    try:
        for server in started:
            server.wait()
        yield started[0], started[1]
    finally:
        for server in started:
            server.stop()


def single_runs(rounds: int) -> tuple[float, float]:
    """Median seconds of a UI run that packs a small drop again, and of one of the bare project."""
    from gristmill.macroxue.samples import write_drop

    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as (ours, bare):
        ours.stop_sensors()
        drops = Path(folder) / "data/drops/macroxue"
        times: list[tuple[float, float]] = []
        chance = random.Random(0)
        checks = ["built", "intact", "lawful", "noteworthy"]
        for number in range(rounds + 1):
            key = f"drop{number}"
            write_drop(drops / key, seed=number, games=1, max_moves=50, depth=6)
            ours.add_partition("macroxue_drops", key)
            bare.add_partition("parts", key)
            turns: list[tuple[Server, list[str], list[str]]] = [
                (ours, ["macroxue", "pack"], checks),
                (bare, ["trivial"], []),
            ]
            took = {}
            for server, asset, named in chance.sample(turns, 2):
                # The queue is looked at once a second: without chance in between, a
                # round would always meet the same end of that second.
                time.sleep(chance.random())
                took[server] = server.run(asset, key, named)
            times.append((took[ours], took[bare]))
    mine, dagsters = map(median, zip(*times[1:], strict=True))
    return mine, dagsters


def batch(partitions: int, rounds: int) -> tuple[float, float]:
    """Median seconds of a range run through the publisher, and of one that only reports.

    Artifacts are flushed to the disk; the instances of both lie in memory, where
    there is such a place, since SQLite waits for the disk far longer than for us.
    """
    import dagster as dg

    from bench.batch_assets import bare, published, source
    from resources import Lake

    times: list[tuple[float, float]] = []
    for number in range(rounds):
        row = {}
        for asset in (published, bare) if number % 2 else (bare, published):
            with (
                tempfile.TemporaryDirectory() as folder,
                tempfile.TemporaryDirectory(dir=kit.MEMORY) as state,
                dg.DagsterInstance.local_temp(state) as instance,
            ):
                # What the round before left to be written and removed is not ours.
                os.sync()
                started = time.perf_counter()
                dg.materialize(
                    [source, asset],
                    selection=[asset],
                    instance=instance,
                    resources={"lake": Lake(data_root=folder)},
                    run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
                    tags={
                        "dagster/asset_partition_range_start": "p0000",
                        "dagster/asset_partition_range_end": f"p{partitions - 1:04}",
                    },
                )
                row[asset] = time.perf_counter() - started
        times.append((row[published], row[bare]))
    ours, limit = map(median, zip(*times, strict=True))
    return ours, limit


def loading(rounds: int) -> float:
    """Median seconds to load the code location in a process that has imported dagster."""
    script = (
        "import time, dagster; started = time.perf_counter(); import definitions;"
        "definitions.build_defs().get_repository_def(); print(time.perf_counter() - started)"
    )
    times = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=kit.CHECKOUT,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(float(done.stdout.split()[-1]))
    return median(times)


def code(given: kit.Given) -> None:
    """The loading of the code location."""
    kit.bounded("code location after `import dagster`: s", loading(given.rounds), most=1)


def partitions(given: kit.Given) -> None:
    """A batch of partitions in one run."""
    count = 200
    ours, limit = (seconds / count * 1000 for seconds in batch(count, 5))
    what = f"batch of {count}, ms a partition: ours {ours:.1f}, bare range run {limit:.1f}"
    kit.bounded(f"{what}, difference", ours - limit, most=10)


def run(given: kit.Given) -> None:
    """A single-partition run from the UI, which packs a drop and makes four checks."""
    ours, limit = single_runs(given.rounds)
    what = f"single-partition run from the UI: ours {ours:.2f} s, bare {limit:.2f} s, ratio"
    kit.bounded(what, ours / limit, most=1.5)


if __name__ == "__main__":
    kit.main(__doc__, code, partitions, run, rounds=21)

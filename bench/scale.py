"""Which number breaks first at 1 PB: measured at 1 % and at 0.1 % of it, on this machine.

The target: 500,000 partitions over all assets, at most 100,000 of one, 10,000 drops, 64 nodes. Each
number is measured at two sizes; the power of their growth gives the number at the target. It prints
a table with the bound of each and by how much the target passes it, the worst last.

    python -m bench.scale [--share 0.01]
"""

from __future__ import annotations

import hashlib
import itertools
import math
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from bench import kit
from bench.dagster_overhead import batch
from bench.large_instance import PACK, PARTITIONS, fill
from bench.publishing import published
from bench.servers import write_home
from bench.tick import ticks
from gristmill.contract import Summary
from gristmill.macroxue.config import PackConfig
from gristmill.provenance import Input
from gristmill.provenance.inventory import missing
from gristmill.provenance.list_artifacts import list_artifacts
from gristmill.publish.build import Attempt
from gristmill.run import locks

ALL_PARTITIONS, OF_ONE_ASSET, DROPS, NODES = 500_000, 100_000, 10_000, 64
_SHARED = 1000
"""Partitions of one shared folder, as months and shards are."""
_DAY = 86_400.0
_INPUTS = 100_000
"""Raw files of one artifact, which its record lists in a file of its own."""


@dataclass(frozen=True)
class Row:
    """A number at two sizes, and what it must not pass at the target.

    few, many: (size, value). target: the size at the target. bound: of the value there.
    """

    what: str
    few: tuple[int, float]
    many: tuple[int, float]
    target: int
    bound: float
    unit: str

    @property
    def power(self) -> float:
        """1 where the number grows as the size does, 0 where it stays."""
        sizes, values = self.many[0] / self.few[0], self.many[1] / max(self.few[1], 1e-9)
        return max(0.0, math.log(max(values, 1e-9)) / math.log(sizes))

    @property
    def expected(self) -> float:
        """The number at the target."""
        return self.many[1] * float(self.target / self.many[0]) ** self.power


def _publish(root: Path, key: str, inputs: Sequence[Input] = (), *, shared: bool = False) -> None:
    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / f"{key}.bin").write_bytes(b"x" * 64)
        return Summary(files={})

    published(
        *(root, "macroxue/pack", key, PackConfig(), make, inputs),
        artifact="scale/shared" if shared else f"scale/{key}",
        shared=shared,
        rebuild=bool(inputs),  # the same partition again and again
    )


def _keys() -> Iterator[str]:
    return (f"p{number:06}" for number in itertools.count())


def _best(work: Callable[[], object], rounds: int = 3) -> float:
    return min(kit.spent(work) for _ in range(rounds))


def artifacts(scratch: Path, count: int) -> dict[str, float]:
    """CPU seconds of one more publish, of `ls` and of the inventory, beside `count` artifacts."""
    root, keys = scratch / f"artifacts-{count}", _keys()
    for _ in range(count):
        _publish(root, next(keys))
    found = {
        "publish": _best(lambda: [_publish(root, next(keys)) for _ in range(20)]) / 20,
        "ls": _best(lambda: list_artifacts(root)),
        "inventory": _best(lambda: missing(root)),
    }
    shutil.rmtree(root)
    return found


def shared_folder(scratch: Path, count: int) -> float:
    """CPU seconds of one more partition in a folder that holds `count` of them."""
    root, keys = scratch / f"shared-{count}", _keys()
    for _ in range(count):
        _publish(root, next(keys), shared=True)
    found = _best(lambda: _publish(root, next(keys), shared=True), 5)
    shutil.rmtree(root)
    return found


def instance(scratch: Path, count: int) -> dict[str, float]:
    """Bytes of an event, CPU seconds of a page of the asset, of a new partition: `count` stand."""
    home = scratch / f"home-{count}"
    write_home(home)
    keys = [f"d{number:06}" for number in range(count)]
    with dg.DagsterInstance.from_config(str(home)) as held:
        fill(held, keys, 100)
        storage = held.event_log_storage
        found = {
            "status": _best(lambda: storage.get_materialized_partitions(PACK)),
            "partition": _best(lambda: held.get_dynamic_partitions(PARTITIONS)),
        }
    # Of the three events of a partition: arrival, its observation, and the build.
    found["bytes"] = float(sum(p.stat().st_size for p in home.rglob("*") if p.is_file()))
    shutil.rmtree(home)
    return found


def manifest(scratch: Path, count: int) -> float:
    """CPU seconds of a build from `count` raw files that are proved by sizes and times."""
    root = scratch / f"manifest-{count}"
    (root / "drops").mkdir(parents=True)
    for number in range(count):
        (root / "drops" / f"{number}").write_bytes(b"x")
    found = _best(lambda: _publish(root, "all", _raw(root, count)))
    shutil.rmtree(root)
    return found


def _raw(root: Path, count: int) -> list[Input]:
    sha256 = hashlib.sha256(b"x").hexdigest()
    paths = [f"drops/{number}" for number in range(count)]
    return [
        Input(path=path, bytes=1, sha256=sha256, mtime_ns=(root / path).stat().st_mtime_ns)
        for path in paths
    ]


def backfill(count: int) -> float:
    """Wall seconds of one run over `count` partitions, each a tiny artifact."""
    return batch(count, 1)[0]


def _take(folder: str, node: int, rounds: int) -> None:
    for _ in range(rounds):
        with locks.locked(Path(folder, "one.lock"), f"node {node}", wait=True):
            pass


def lock(scratch: Path, nodes: int, rounds: int = 200) -> float:
    """Wall seconds until each of `nodes` processes held one lock once."""
    context = multiprocessing.get_context("fork")
    folder = scratch / f"locks-{nodes}"
    folder.mkdir()
    processes = [
        context.Process(target=_take, args=(str(folder), node, rounds)) for node in range(nodes)
    ]
    before = time.monotonic()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return (time.monotonic() - before) / rounds


def rows(scratch: Path, share: float) -> Iterable[Row]:
    """Measure; see the module's docstring for the target."""
    many, few = (max(10, int(ALL_PARTITIONS * share * part)) for part in (1, 0.1))
    left, right = artifacts(scratch, few), artifacts(scratch, many)
    for name, what, bound in (
        ("publish", "publishing one more artifact", 0.1),
        ("ls", "`gristmill ls`", 600.0),
        ("inventory", "what is missing, as `verify` asks first", 600.0),
    ):
        yield Row(what, (few, left[name]), (many, right[name]), ALL_PARTITIONS, bound, "CPU s")
    parts = [max(10, int(_SHARED * part)) for part in (0.1, 1)]
    folder = [(count, shared_folder(scratch, count)) for count in parts]
    yield Row("one more partition of a shared folder", *folder, OF_ONE_ASSET, 1.0, "CPU s")
    many, few = (max(10, int(OF_ONE_ASSET * share * part)) for part in (5, 0.5))
    left, right = instance(scratch, few), instance(scratch, many)
    for name, what, size, bound, unit in (
        ("bytes", "event log of the instance", ALL_PARTITIONS, 50e9, "bytes"),
        ("status", "which partitions of an asset are built", OF_ONE_ASSET, 10.0, "CPU s"),
        ("partition", "the list of an asset's partitions", OF_ONE_ASSET, 10.0, "CPU s"),
    ):
        yield Row(what, (few, left[name]), (many, right[name]), size, bound, unit)
    many, few = (max(10, int(DROPS * share * part)) for part in (10, 1))
    for_few, for_many = (ticks(scratch / f"tick-{n}", n, 3) for n in (few, many))
    (name,) = (key for key in for_many if key != "check_states")
    tick = (few, for_few[name]), (many, for_many[name])
    yield Row("a sensor's tick, nothing new", *tick, DROPS, 60.0, "CPU s")
    held = (4, lock(scratch, 4)), (NODES, lock(scratch, NODES))
    yield Row("a lock that all nodes take in turn", *held, NODES, 1.0, "s")
    few, many = (max(10, int(DROPS * share * part)) for part in (0.2, 2))
    runs = (few, backfill(few)), (many, backfill(many))
    yield Row("a backfill, as one run", *runs, ALL_PARTITIONS, _DAY, "s")
    few, many = (max(10, int(_INPUTS * share * part)) for part in (1, 10))
    proved = (few, manifest(scratch, few)), (many, manifest(scratch, many))
    yield Row("one build from many raw files, with its list", *proved, _INPUTS, 600.0, "CPU s")


def table(given: kit.Given) -> None:
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    found = sorted(rows(given.scratch, given.share), key=lambda row: row.expected / row.bound)
    print("| what | at few | at more | grows by the power | at the target | bound | share |")
    print("|---|---|---|---|---|---|---|")
    for row in found:
        pair = " | ".join(f"{value:.4g} at {size:,}" for size, value in (row.few, row.many))
        print(
            f"| {row.what}, {row.unit} | {pair} | {row.power:.2f} | "
            f"{row.expected:.4g} at {row.target:,} | {row.bound:.4g} | "
            f"{row.expected / row.bound:.3g} |"
        )


if __name__ == "__main__":
    kit.main(__doc__, table, scratch_in=kit.MEMORY, share=0.01)

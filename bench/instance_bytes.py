"""What runs cost the instance: bytes of DAGSTER_HOME for a run of one pack, and for one of many.

Run from the checkout: python -m bench.instance_bytes [--runs N] [--packs N] [--only PART].

`instance` builds a sample pack again and again on an instance of its own, each time in a run, and
then lets `gristmill prune` keep one run. Prints kB a run, by the database that has them, and the
size after pruning against that before. `partitions` builds many packs of one game with one command.
Prints CPU seconds a pack, those of the start of the command included, and kB a partition, each with
its bound.
"""

from __future__ import annotations

from pathlib import Path

from bench import kit
from bench.servers import write_home
from gristmill.macroxue.samples import write_drop


def _sizes(home: Path) -> dict[str, int]:
    """Bytes of the databases of runs, of the index of events, and of all else."""
    sizes = {"own database": 0, "index of events": 0, "all else": 0}
    for path in home.rglob("*"):
        if not path.is_file():
            continue
        name = path.name.partition(".db")[0]
        is_run = path.parent.name == "runs" and len(name) == 36
        kind = "own database" if is_run else "index of events" if name == "index" else "all else"
        sizes[kind] += path.stat().st_size
    return sizes


_COMMAND = ("-m", "gristmill.cli")


def instance(given: kit.Given) -> None:
    home, data, runs = given.scratch / "home", given.scratch / "data", given.runs
    home.mkdir()
    write_drop(data / "drops/macroxue/d1", seed=1, games=1, max_moves=20, depth=6)
    places = {"GRISTMILL_DATA": str(data), "DAGSTER_HOME": str(home)}
    build = [*_COMMAND, "materialize", "macroxue/pack", "--partition", "d1", "--rebuild"]
    kit.python(build, places)
    first = _sizes(home)
    for _ in range(runs):
        kit.python(build, places)
    last = _sizes(home)
    kit.python([*_COMMAND, "prune", "--keep-runs", "1"], places)
    pruned = sum(_sizes(home).values())
    for kind, size in last.items():
        print(f"{kind}: {(size - first[kind]) / runs / 1e3:.0f} kB a run")
    total = sum(last.values())
    print(f"a run: {(total - sum(first.values())) / runs / 1e3:.0f} kB")
    print(f"{runs + 1} runs: {total / 1e6:.1f} MB, pruned to one: {pruned / total:.2f} of that")


def partitions(given: kit.Given) -> None:
    home, data, packs = given.scratch / "many", given.scratch / "packs", given.packs
    write_home(home)
    for number in range(packs):
        drop = data / f"drops/macroxue/d{number:05}"
        write_drop(drop, seed=number, games=1, max_moves=200, depth=6)
    places = {"GRISTMILL_DATA": str(data), "DAGSTER_HOME": str(home)}
    seconds = kit.python([*_COMMAND, "materialize", "macroxue/pack"], places)
    kit.bounded(f"{packs} packs of one game: CPU s a pack", seconds / packs, most=0.05)
    kit.bounded("kB of instance a partition", sum(_sizes(home).values()) / packs / 1e3, most=60)


if __name__ == "__main__":
    kit.main(__doc__, instance, partitions, scratch_in=kit.MEMORY, runs=10, packs=500)

"""What `gristmill materialize --all` costs where nothing needs doing.

Run from the checkout: python -m bench.nothing_to_do [--packs N]. It packs N small drops
(default 400) and a tenth of them in roots and instances of their own, then calls the command
again and measures its CPU seconds, those of its start included. The difference is that of the
artifacts. Status 1 where an artifact costs more than 10 ms, where a call takes more than 5 CPU
seconds and 10 ms an artifact beyond the samples, or where a run was started.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from bench.servers import CHECKOUT
from bench.small_commands import children_seconds

BOUND_MS, BOUND_SECONDS = 10.0, 5.0
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def materialize(root: Path) -> float:
    """CPU seconds of one call of the command on a data root and its instance."""
    code = "from gristmill.cli import main; main(['materialize', 'macroxue/pack'])"
    if (root / "all").exists():
        code = code.replace("macroxue/pack", "--all")
    root_and_instance = {"GRISTMILL_DATA": str(root / "data"), "DAGSTER_HOME": str(root / "home")}
    return children_seconds(("-c", code), root_and_instance)


def runs_of(root: Path) -> int:
    import dagster as dg

    with dg.DagsterInstance.from_config(str(root / "home")) as instance:
        return instance.get_runs_count()


def prepare(root: Path) -> None:
    """An instance of its own: its state is not that of the checkout."""
    home = root / "home"
    home.mkdir(parents=True)
    text = (CHECKOUT / "dagster.yaml").read_text()
    (home / "dagster.yaml").write_text(text.replace(": .dagster/", f": {home}/"))


def packs(folder: Path, count: int, rounds: int) -> tuple[float, float]:
    """CPU seconds to build some packs, and least ones to find nothing to do."""
    from gristmill.macroxue.samples import write_drop

    prepare(folder)
    for number in range(count):
        drop = folder / f"data/drops/macroxue/drop{number:04}"
        write_drop(drop, seed=number, games=1, max_moves=20, depth=6)
    built = materialize(folder)
    before = runs_of(folder)
    idle = min(materialize(folder) for _ in range(rounds))
    if runs_of(folder) != before:
        raise SystemExit("a run was started though nothing needed doing")
    return built, idle


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packs", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--samples", type=Path, help="a data root and its instance (data/, home/) built before"
    )
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(dir=_MEMORY) as scratch:
        few, many = max(given.packs // 10, 1), given.packs
        _, least = packs(Path(scratch) / "few", few, given.rounds)
        built, most = packs(Path(scratch) / "many", many, given.rounds)
        shutil.rmtree(scratch, ignore_errors=True)
        Path(scratch).mkdir()
    each = (most - least) / (many - few) * 1000
    missed += each > BOUND_MS
    print(
        f"{many} packs: CPU s to build {built:.1f} | to find nothing to do {most:.2f} | ratio "
        f"{most / built:.3f} | ms an artifact {each:.2f} | required <= {BOUND_MS}",
        flush=True,
    )
    if given.samples is not None:
        seconds = min(materialize(given.samples) for _ in range(given.rounds))
        missed += seconds > BOUND_SECONDS
        print(f"samples: CPU s to find nothing to do {seconds:.2f} | required <= {BOUND_SECONDS}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

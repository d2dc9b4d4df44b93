"""What `gristmill materialize --all` costs where nothing needs doing.

Run from the checkout: python -m bench.nothing_to_do [--packs N] [--rounds N]. It packs N small
drops (default 400) and a tenth of them in roots and instances of their own, then calls the command
again and measures its CPU seconds, those of its start included: once with a look at everything, as
after a change, and once where the answer of before stands. The difference is that of the artifacts.
Status 1 where a look takes more than 10 ms an artifact or a standing answer more than 0.5 ms, where
a call on the samples takes more than 1.2 CPU seconds, or where a run was started.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from bench import kit
from bench.servers import write_home

BOUND_MS, BOUND_STANDING_MS, BOUND_SECONDS = 10.0, 0.5, 1.2


def materialize(root: Path, looks: bool = False) -> float:
    """CPU seconds of one call of the command on a data root and its instance.

    looks: whether it gives no answer of before, as after a change.
    """
    code = "import dagster; " if looks else ""
    code += "from gristmill.cli import main; main(['materialize', 'macroxue/pack'])"
    if (root / "all").exists():
        code = code.replace("macroxue/pack", "--all")
    root_and_instance = {"GRISTMILL_DATA": str(root / "data"), "DAGSTER_HOME": str(root / "home")}
    return kit.python(("-c", code), root_and_instance)


def runs_of(root: Path) -> int:
    import dagster as dg

    with dg.DagsterInstance.from_config(str(root / "home")) as instance:
        return instance.get_runs_count()


def packs(folder: Path, count: int, rounds: int) -> tuple[float, float, float]:
    """CPU seconds to build some packs, and least ones to find nothing to do and to say it again."""
    from gristmill.macroxue.samples import write_drop

    write_home(folder / "home")
    for number in range(count):
        drop = folder / f"data/drops/macroxue/drop{number:04}"
        write_drop(drop, seed=number, games=1, max_moves=20, depth=6)
    built = materialize(folder)
    before = runs_of(folder)
    idle = min(materialize(folder, looks=True) for _ in range(rounds + 1))
    again = min(materialize(folder) for _ in range(rounds))
    if runs_of(folder) != before:
        raise SystemExit("a run was started though nothing needed doing")
    return built, idle, again


def idle(given: kit.Given) -> None:
    few, many = max(given.packs // 10, 1), given.packs
    _, least, least_again = packs(given.scratch / "few", few, given.rounds)
    built, most, most_again = packs(given.scratch / "many", many, given.rounds)
    shutil.rmtree(given.scratch)
    given.scratch.mkdir()
    print(
        f"{many} packs: CPU s to build {built:.1f}, to find nothing to do {most:.2f}, "
        f"ratio {most / built:.3f}, to say it again {most_again:.2f}"
    )
    again_ms = (most_again - least_again) / (many - few) * 1000
    kit.bounded("ms an artifact of a standing answer", again_ms, most=BOUND_STANDING_MS)
    kit.bounded("ms an artifact", (most - least) / (many - few) * 1000, most=BOUND_MS)
    if given.samples is not None:
        seconds = min(materialize(given.samples) for _ in range(given.rounds))
        kit.bounded("samples: CPU s to find nothing to do", seconds, most=BOUND_SECONDS)


if __name__ == "__main__":
    samples = {"type": Path, "help": "a data root and its instance (data/, home/) built before"}
    kit.main(__doc__, idle, scratch_in=kit.MEMORY, packs=400, rounds=2, samples=samples)

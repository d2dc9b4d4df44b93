"""What a tick of the sensors costs where nothing arrived, by the number of drops.

Run from the checkout: python -m bench.tick [--drops N]. It writes N small drops (default 2,000)
and a tenth of them, each set with an instance in which all of them are built, and measures the CPU
seconds of one tick of each sensor that watches them. Status 1 where a tick takes more than 0.3 s.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg

from assets.macroxue import FAMILY
from bench.large_instance import add_run, fill
from bench.servers import CHECKOUT
from gristmill.inbox import State, look
from gristmill.macroxue.samples import write_drop
from resources import Lake
from sensors.check_states import check_states
from sensors.raw_drops import raw_drop_sensor

BOUND_SECONDS = 0.3
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_INBOX = FAMILY.inboxes[0]
_PER_RUN = 100


def prepare(root: Path, drops: int) -> tuple[dg.DagsterInstance, Lake, str]:
    """An instance that knows drops and their packs and values, and the cursor of the sensor."""
    home = root / "home"
    home.mkdir(parents=True)
    text = (CHECKOUT / "dagster.yaml").read_text()
    (home / "dagster.yaml").write_text(text.replace(": .dagster/", f": {home}/"))
    inbox = root / "data/drops/macroxue"
    write_drop(root / "one", seed=1, games=2, max_moves=20, depth=6)
    keys = [f"d{number:05}" for number in range(drops)]
    for key in keys:
        shutil.copytree(root / "one", inbox / key)
        (inbox / key / ".done").touch()
    instance = dg.DagsterInstance.from_config(str(home))
    fill(instance, keys, _PER_RUN)
    for asset in _INBOX.targets[1:]:
        for start in range(0, drops, _PER_RUN):
            add_run(instance, asset.key, keys[start : start + _PER_RUN])
    state = State()
    for _ in range(2):
        look(inbox, state, _INBOX.refusal, most=drops, seconds=float("inf"))
    if len(state.settled) != drops:
        raise SystemExit(f"{len(state.settled):,} of {drops:,} drops have settled")
    return instance, Lake(data_root=str(root / "data")), state.write()


def seconds(tick: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the fastest of some ticks; the first one is not among them."""
    tick()
    found = []
    for _ in range(rounds):
        before = time.process_time()
        tick()
        found.append(time.process_time() - before)
    return min(found)


def ticks(root: Path, drops: int, rounds: int) -> dict[str, float]:
    """CPU seconds of a tick of each sensor."""
    instance, lake, cursor = prepare(root, drops)
    watch = raw_drop_sensor(_INBOX)

    def drop_tick() -> None:
        nonlocal cursor
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources={"lake": lake}
        )
        result = watch(context)
        assert isinstance(result, dg.SensorResult)
        assert not result.run_requests, "a tick asked for a run"
        cursor = result.cursor

    def state_tick() -> None:
        check_states(dg.build_sensor_context(instance=instance, resources={"lake": lake}))

    with instance:
        return {
            watch.name: seconds(drop_tick, rounds),
            check_states.name: seconds(state_tick, rounds),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drops", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=_MEMORY) as scratch:
        few = ticks(Path(scratch) / "few", max(given.drops // 10, 1), given.rounds)
        many = ticks(Path(scratch) / "many", given.drops, given.rounds)
    missed = 0
    for name, most in many.items():
        missed |= most > BOUND_SECONDS
        print(
            f"{name}, {given.drops:,} drops: CPU s a tick {most:.3f} | a tenth of the drops "
            f"{few[name]:.3f} | ratio {most / few[name]:.1f} | required <= {BOUND_SECONDS}"
        )
    return missed


if __name__ == "__main__":
    raise SystemExit(main())

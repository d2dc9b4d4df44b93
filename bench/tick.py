"""What a tick of the sensors costs where nothing arrived, by the number of drops.

Run from the checkout: python -m bench.tick [--drops N] [--rounds N]. It writes N small drops
(default 2,000) and a tenth of them, each set with an instance in which all of them are built, and
measures the CPU seconds of one tick of each sensor that watches them. Status 1 where a tick takes
more than 0.3 s.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg

from assets.macroxue import FAMILY
from bench import kit
from bench.large_instance import add_run, fill
from bench.servers import write_home
from gristmill.inbox import State, look
from gristmill.macroxue.samples import write_drop
from resources import Lake
from sensors.after_runs import check_states
from sensors.raw_drops import raw_drop_sensor

BOUND_SECONDS = 0.3
_INBOX = FAMILY.inboxes[0]
_PER_RUN = 100


def prepare(root: Path, drops: int) -> tuple[dg.DagsterInstance, Lake, str]:
    """An instance that knows drops and their packs and values, and the cursor of the sensor."""
    home = root / "home"
    write_home(home)
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
    state, lake = State(), Lake(data_root=str(root / "data"))
    asked = lake.asked(_INBOX.folder, by_person=False)
    for _ in range(2):
        look(inbox, state, asked, most=drops, seconds=float("inf"))
    if len(state.settled) != drops:
        raise SystemExit(f"{len(state.settled):,} of {drops:,} drops have settled")
    return instance, lake, state.write()


def ticks(root: Path, drops: int, rounds: int) -> dict[str, float]:
    """CPU seconds of the fastest of some ticks of each sensor; the first is not among them."""
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
        drop_tick()
        state_tick()
        return {
            watch.name: min(kit.spent(drop_tick) for _ in range(rounds)),
            check_states.name: min(kit.spent(state_tick) for _ in range(rounds)),
        }


def sensors(given: kit.Given) -> None:
    few = ticks(given.scratch / "few", max(given.drops // 10, 1), given.rounds)
    for name, most in ticks(given.scratch / "many", given.drops, given.rounds).items():
        fewer = f"a tenth of the drops {few[name]:.3f}, ratio {most / few[name]:.1f}"
        what = f"{name}, {given.drops:,} drops: {fewer}, CPU s a tick"
        kit.bounded(what, most, most=BOUND_SECONDS)


if __name__ == "__main__":
    kit.main(__doc__, sensors, scratch_in=kit.MEMORY, drops=2000, rounds=7)

"""A takedown names the steps of runs that saw a row, by the states of their loaders."""

import json
from pathlib import Path

from gristmill.loading import Loader, read_mix
from gristmill.macroxue.samples import write_drop
from gristmill.run.progress import SILENT
from gristmill.takedowns import work
from gristmill.takedowns.report import steps
from tests.reasoning.published_root import built

HOW = {"containing": False, "erase": True, "reason": "asked", "shared": 0}


def test_the_steps_are_those_whose_samples_come_from_the_row(tmp_path: Path) -> None:
    mix, state, drop = tmp_path / "mix.toml", tmp_path / "state.json", tmp_path / "drops/macroxue/a"
    write_drop(drop, seed=1, games=3, max_moves=12, depth=6)
    built(tmp_path, "macroxue/pack", "a")
    mix.write_text('[source.a]\npath = "macroxue/packs/a"\nepochs = 1\n')
    loader = Loader(read_mix(mix, tmp_path), 2, form="numpy")
    for _ in zip(range(6), loader, strict=False):
        pass
    state.write_text(json.dumps(loader.state_dict()))
    target = work.target_of(tmp_path, "macroxue/a")
    (tmp_path / "rows.txt").write_text(min(unit.name for unit in target.units()))
    units = work.by_rows(target, tmp_path / "rows.txt")
    plan = work.planned(target, units, [], HOW)
    (said,) = steps(tmp_path, plan, [state], mix, SILENT)
    files = {f"drops/macroxue/a/{unit.file}" for unit in units}
    saw = [
        step
        for step in range(loader.step)
        for source, number in loader.numbers(step)
        if any(
            files & {*map(str, each.facts().values())}
            for each in loader.plan.sources[source].origin(number)
        )
    ]
    shown = ", ".join(map(str, sorted({*saw})))
    assert 0 < len({*saw}) <= loader.step == 6
    assert said == (
        f"{len(saw)} samples in {len({*saw})} of 6 steps of state.json had the rows: {shown}"
    )
    state.write_text(json.dumps(Loader(read_mix(mix, tmp_path), 2, form="numpy").state_dict()))
    assert [*steps(tmp_path, plan, [state], mix, SILENT)] == [
        "none of 0 steps of state.json had the rows"
    ]

"""Five versions and a takedown in a live instance: log, differences, and a run from before each."""

import json
import shutil
from itertools import pairwise

import pytest

from gristmill.loading import Loader, read_mix
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import LiveInstance, until

pytestmark = pytest.mark.slow
VERSIONS, LOGS = 5, 4


def asked(live: LiveInstance, *words: str) -> str:
    done = live.gristmill(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_from_before_each_version_is_traced_by_what_the_instance_kept(live_instance):
    live, name = live_instance, "macroxue/packs/mine"
    made = live.checkout.parent / "made"
    write_drop(made, seed=7, games=VERSIONS + LOGS, max_moves=30, depth=6)
    stems = sorted(each.name.split(".")[0] for each in made.glob("*.meta.json"))
    (mix := live.data / "mix.toml").write_text(f'[source.a]\npath = "{name}"\nepochs = 1\n')
    states = []
    for version in range(VERSIONS):
        fresh = live.data / "fresh"
        fresh.mkdir()
        for stem in stems[version : version + LOGS]:
            for file in made.glob(f"{stem}.*"):
                shutil.copy(file, fresh)
        shutil.rmtree(live.drops / "mine", ignore_errors=True)
        fresh.rename(live.drops / "mine")
        until("the sensor requests a run", lambda: len(live.runs("mine")) > version)  # noqa: B023
        assert live.ended("mine", version + 1)[0].status == "SUCCESS"
        if version:
            said = live.partition("mine").metadata["difference"]
            assert "1 removed\n" in said and "1 added\n" in said, said
        loader = Loader(read_mix(mix, live.data), 2, form="numpy")
        next(iter(loader))
        states.append(live.data / f"state{version}.json")
        states[-1].write_text(json.dumps(loader.state_dict()))
    (live.data / "rows.txt").write_text(stems[VERSIONS])
    words = ("--rows", str(live.data / "rows.txt"), "--erase", "--yes", "--json")
    report = json.loads(asked(live, "forget", "macroxue/mine", *words))
    assert (report["stands_still"], report["stale"], report["counts"]["rebuilt"]) == ([], [], 2)
    listed = json.loads(asked(live, "log", name, "--json"))["versions"]
    assert [each["published"] for each in listed] == [True, *[False] * VERSIONS]
    for at, (new, old) in enumerate(pairwise(listed)):
        pair = (old["data_version"], new["data_version"])
        found = json.loads(asked(live, "diff", name, *pair, "--json"))
        gone = stems[VERSIONS if at == 0 else VERSIONS - 1 - at]
        assert [found[kind] for kind in ("removed", "added", "changed")] == [1, int(at > 0), 0]
        assert gone in found["examples"]["removed"][0]["name"]
    for version, state in enumerate(states):
        done = live.gristmill("batch", str(state), "--mix", str(mix), "--step", "0")
        assert done.returncode == 0 and "was replaced; its samples are gone" in done.stderr
        assert any(stem in done.stdout for stem in stems[version : version + LOGS]), done.stdout

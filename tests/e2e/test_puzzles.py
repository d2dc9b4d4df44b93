"""Puzzles under a live `dagster dev`: drops and recipes that are copied in become datasets."""

import json

import pytest

from gristmill import provenance
from tests.e2e.live_instance import RUNNING, LiveInstance, Run, until

pytestmark = pytest.mark.slow

KINDS = {"mine": "arc", "games": "domino"}
RECIPES = {
    "mine": 'kind = "arc"\nsources = ["first", "second/corpus"]\n[settings]\nnum_aug = 2\n',
    "games": 'kind = "domino"\n[settings]\nnum_games = 30\n',
}


def _copy_tasks(live_instance: LiveInstance, source: str, start: int) -> None:
    for width, split in enumerate(("training", "evaluation"), 2 * start):
        # Tasks of different sizes have no pair in common.
        pairs = [{"input": [[n] * width], "output": [[n, 7]] * width} for n in range(3)]
        path = live_instance.data / "drops/puzzles" / source / split / f"{split[0]}{start}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"train": pairs[:2], "test": pairs[2:]}))


def test_recipes_are_built_once_their_sources_have_arrived(live_instance: LiveInstance) -> None:
    recipes = live_instance.data / "drops/puzzles/recipes"
    recipes.mkdir(parents=True)
    for name, text in RECIPES.items():
        (recipes / f"{name}.toml").write_text(text)
    _copy_tasks(live_instance, "first", 1)
    (games,) = _ended(live_instance, "games")
    assert games.tags["dagster/sensor_name"] == "puzzles_recipes_drops"
    assert live_instance.runs("mine") == []
    _shows(live_instance, "games")
    _copy_tasks(live_instance, "second/corpus", 5)
    (mine,) = _ended(live_instance, "mine")
    assert mine.tags["dagster/sensor_name"] == "puzzles_drops"
    found = live_instance.gristmill("verify", str(live_instance.data))
    assert found.returncode == 0, found.stdout + found.stderr
    _shows(live_instance, "mine")
    until("no run is left", lambda: not any(r.status in RUNNING for r in live_instance.runs(None)))


def _shows(live_instance: LiveInstance, name: str) -> None:
    record = provenance.read_record(live_instance.data / "puzzles" / name / provenance.RECORD)
    live_instance.shows(["puzzles", KINDS[name]], name, record)


def _ended(live_instance: LiveInstance, name: str) -> list[Run]:
    until(f"{name} has a run", lambda: live_instance.runs(name), seconds=120)
    runs = live_instance.ended(name)
    assert [run.status for run in runs] == ["SUCCESS"], live_instance.server.failure(runs[0].run_id)
    return runs

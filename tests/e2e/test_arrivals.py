"""Arrivals in a live instance: slow copies, interrupted runs, and the check that names them."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from gristmill import provenance
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import LiveInstance, enlarge, slot_of, until

pytestmark = pytest.mark.slow

_CHECK = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization {
    status evaluation { severity success description } } } } } } } }"""


def check(live: LiveInstance) -> dict[str, Any]:
    """What the UI shows of the check `arrivals` of the raw asset; empty where it is missing."""
    answer = live.server.ask(_CHECK, key={"path": ["macroxue", "raw_drop"]})
    (found,) = answer["assetNodeOrError"]["assetChecksOrError"]["checks"]
    execution = found["executionForLatestMaterialization"] or {}
    return execution.get("evaluation") or {}


def says(live: LiveInstance, text: str) -> bool:
    return text in check(live).get("description", "").replace("\\", "")


def test_a_run_that_is_killed_with_everything_is_requested_again_at_the_next_start(live_instance):
    folder = live_instance.data / "made/big"
    write_drop(folder, seed=500, games=6, max_moves=1200, depth=6)
    enlarge(folder, 300)
    (folder / "gristmill.toml").write_text("[macroxue.pack]\nworkers = 2\n")
    # A copy that has the mark is never taken, however long it pauses.
    marked = live_instance.drops / "marked"
    shutil.copytree(folder, marked, ignore=shutil.ignore_patterns("copy0*"))
    (marked / ".incomplete").touch()
    folder.rename(live_instance.drops / "big")
    until("the sensor requests a run", lambda: live_instance.runs("big"))
    (run,) = live_instance.runs("big")
    live_instance.worker_at_work(run.run_id, slot_of(live_instance.pack("big")))
    live_instance.kill()
    live_instance.start()
    first, again = list(reversed(live_instance.ended("big", 2)))
    assert (first.run_id, first.status, again.status) == (run.run_id, "FAILURE", "SUCCESS")
    assert provenance.verify(live_instance.pack("big")) == []
    values = live_instance.statuses(["macroxue", "values"])
    assert values["materialized"] == ["big"]
    until("the check names the marked drop", lambda: says(live_instance, "marked (arriving)"))
    assert check(live_instance)["success"] is False
    assert check(live_instance)["severity"] == "WARN"
    assert live_instance.runs("marked") == []
    (marked / ".incomplete").unlink()
    until("the marked drop is built", lambda: live_instance.runs("marked"))
    assert live_instance.ended("marked")[0].status == "SUCCESS"
    until("the check passes", lambda: check(live_instance).get("success"))
    time.sleep(40)  # two looks more
    assert [len(live_instance.runs(key)) for key in ("big", "marked")] == [2, 1]


def test_a_drop_that_is_gone_is_named_with_the_command_that_forgets_it(live_instance):
    away: Path = live_instance.data / "away"
    (live_instance.drops / "marked").rename(away)
    until("the check names it", lambda: says(live_instance, "marked (gone)"))
    assert live_instance.gristmill("retire", "marked").returncode == 0
    until("the check passes", lambda: check(live_instance).get("success"))

"""What the UI says of the checks of an asset, after good drops, bad ones, and a batch of both."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bench.servers import LAUNCH
from gristmill.macroxue.samples import write_drop
from tests.e2e.live_instance import PACK, LiveInstance, drop

pytestmark = pytest.mark.slow

NAMES = ["built", "intact", "lawful", "noteworthy"]
_STATES = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name
    executionForLatestMaterialization { status evaluation { severity description
      metadataEntries { label ... on TableMetadataEntry { table { records } } } } } } } } } } }"""

States = dict[str, tuple[str, list[str]]]
PASSED: tuple[str, list[str]] = ("passed", [])


def states(live: LiveInstance, asset: list[str] = PACK) -> States:
    """The state of each check as the asset's page has it, and the partitions in its table."""
    answer = live.server.ask(_STATES, key={"path": asset})["assetNodeOrError"]
    found: States = {}
    for check in answer["assetChecksOrError"]["checks"]:
        execution = check["executionForLatestMaterialization"]
        assert execution is not None, f"{check['name']} was never executed"
        if execution["status"] == "SUCCEEDED":
            found[check["name"]] = PASSED
        elif execution["status"] == "FAILED":
            found[check["name"]] = (
                execution["evaluation"]["severity"].lower(),
                _partitions(execution["evaluation"]["metadataEntries"]),
            )
        else:
            found[check["name"]] = (execution["status"].lower(), [])
    return found


def _partitions(entries: list[dict[str, Any]]) -> list[str]:
    return [
        json.loads(record)["partition"]
        for entry in entries
        for record in entry.get("table", {}).get("records", ())
    ]


def spoil(folder: Path) -> None:
    file = sorted(folder.glob("*.jsonl.gz"))[0]
    lines = gzip.decompress(file.read_bytes()).decode()
    file.write_bytes(gzip.compress(lines.replace('"board":[', '"board":[99,', 1).encode()))


def build(live: LiveInstance, key: str) -> str:
    live.server.add_partition("macroxue_drops", key)
    run = live.server.launch(PACK, key, NAMES)
    return str(live.server.finished(run)["status"])


def execute_all(live: LiveInstance) -> str:
    """What the button does on the page of the asset's checks."""
    selector = {
        **live.server.selector,
        "jobName": "__ASSET_JOB",
        "assetSelection": [],
        "assetCheckSelection": [{"assetKey": {"path": PACK}, "name": name} for name in NAMES],
    }
    launched = live.server.ask(
        LAUNCH, params={"selector": selector, "mode": "default", "runConfigData": {}}
    )
    return str(live.server.finished(launched["launchRun"]["run"]["runId"])["status"])


def test_a_finding_stays_until_its_partition_is_built_again(live_instance: LiveInstance) -> None:
    live_instance.server.stop_sensors()
    clean = dict.fromkeys(NAMES, PASSED)
    # Each fifth game of this drop starts on a board with a 65536.
    write_drop(live_instance.drops / "a", seed=1, games=4, max_moves=40, depth=7, legacy=True)
    assert build(live_instance, "a") == "SUCCESS"
    assert states(live_instance) == clean | {"noteworthy": ("warn", ["a"])}

    drop(live_instance.drops / "b", seed=11)
    assert build(live_instance, "b") == "SUCCESS"
    assert states(live_instance) == clean | {"noteworthy": ("warn", ["a"])}

    spoil(drop(live_instance.drops / "c", seed=21))
    assert build(live_instance, "c") == "FAILURE"
    red = clean | {"noteworthy": ("warn", ["a"]), "built": ("error", ["c"])}
    assert states(live_instance) == red

    keys = [f"fill{number}" for number in range(3)]
    for number, key in enumerate(keys):
        drop(live_instance.drops / key, seed=100 + 10 * number)
        live_instance.server.add_partition("macroxue_drops", key)
    spoil(live_instance.drops / "fill1")
    status, runs = live_instance.backfilled(live_instance.backfill(keys))
    assert (status, len(runs)) == ("COMPLETED_FAILED", 1)
    red |= {"built": ("error", ["c", "fill1"])}
    assert states(live_instance) == red

    assert execute_all(live_instance) == "SUCCESS"
    assert states(live_instance) == red

    done = live_instance.gristmill("materialize", "macroxue/pack", "--partition", "b")
    assert done.returncode == 0, done.stdout + done.stderr
    assert states(live_instance) == red
    for key in ("c", "fill1"):
        drop(live_instance.drops / key, seed=21)
        assert build(live_instance, key) == "SUCCESS"
    write_drop(live_instance.data / "source", seed=1, games=2, max_moves=40, depth=7)
    for file in (live_instance.drops / "a").iterdir():
        file.unlink()
    for file in (live_instance.data / "source").iterdir():
        file.rename(live_instance.drops / "a" / file.name)
    assert build(live_instance, "a") == "SUCCESS"
    assert states(live_instance) == clean

    # A value that the launchpad does not refuse: the run is red, and one command clears it.
    values = {"ops": {"macroxue__pack": {"config": {"shard_rows": -1}}}}
    run = live_instance.server.launch(PACK, "b", NAMES, values)
    assert live_instance.server.finished(run)["status"] == "FAILURE"
    assert states(live_instance) == clean | {"built": ("error", ["b"])}
    assert live_instance.statuses()["failed"] == ["b"]
    done = live_instance.gristmill("materialize", "macroxue/pack", "--partition", "b")
    assert done.returncode == 0, done.stdout + done.stderr
    assert states(live_instance) == clean
    assert live_instance.statuses()["failed"] == []

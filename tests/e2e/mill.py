"""A copy of the checkout with a `dagster dev`, a data root and drops of its own, for tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.servers import Server, copy_checkout, plain_environment
from gristmill.samples.macroxue import write_drop

PACK, RAW_DROP = ["macroxue", "pack"], ["macroxue", "raw_drop"]
CHECKS = ["intact", "lawful"]

_PARTITION = """query($key: AssetKeyInput!, $partition: String!) {
  assetNodeOrError(assetKey: $key) { ... on AssetNode {
    staleStatus(partition: $partition)
    staleCauses(partition: $partition) { key { path } partitionKey category reason }
    assetMaterializations(partitions: [$partition], limit: 1) {
      runId tags { key value } metadataEntries { label
        ... on IntMetadataEntry { intRepr } ... on FloatMetadataEntry { floatRepr }
        ... on TextMetadataEntry { text } ... on PathMetadataEntry { path }
        ... on MarkdownMetadataEntry { mdStr } ... on JsonMetadataEntry { jsonString } } } } } }"""
_STATUSES = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses {
    materializedPartitions failedPartitions materializingPartitions
    unmaterializedPartitions } } } } }"""
_OBSERVATIONS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) {
  ... on AssetNode { assetObservations(limit: 50) { description } } } }"""
_TICKS = """query($sensor: SensorSelector!) { sensorOrError(sensorSelector: $sensor) {
  ... on Sensor { sensorState { ticks(limit: 20) { status skipReason error { message } } } } } }"""
_RUNS = """query($partition: String!) { runsOrError(
  filter: { tags: [{ key: "dagster/partition", value: $partition }] }) {
  ... on Runs { results { runId status tags { key value } } } } }"""
_BACKFILL = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(
  backfillParams: $params) { __typename ... on LaunchBackfillSuccess { backfillId }
  ... on PythonError { message } } }"""
_BACKFILL_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status runs { runId status tags { key value } } } } }"""


@dataclass(frozen=True)
class Partition:
    """What the UI shows of one partition of the pack asset."""

    stale: str
    causes: list[dict[str, Any]]
    run_id: str | None
    tags: dict[str, str]
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Run:
    run_id: str
    status: str
    tags: dict[str, str]


class Mill:
    """The project as a person has it: a checkout, a data root, a running `dagster dev`."""

    def __init__(self, folder: Path) -> None:
        self.checkout, self.data = folder / "checkout", folder / "data"
        copy_checkout(self.checkout)
        self.drops.mkdir(parents=True)
        self.server = self.start()

    @property
    def drops(self) -> Path:
        return self.data / "drops/macroxue"

    def pack(self, key: str) -> Path:
        return self.data / "macroxue/packs" / key

    def start(self) -> Server:
        self.server = Server(self.checkout, "gristmill", {"GRISTMILL_DATA": str(self.data)})
        self.server.wait()
        return self.server

    def operate(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`python operate.py ...` in the copy, with nothing set but the data root."""
        return subprocess.run(
            [sys.executable, "operate.py", *words],
            cwd=self.checkout,
            env={**plain_environment(), "GRISTMILL_DATA": str(self.data)},
            capture_output=True,
            text=True,
            check=False,
        )

    def launch(self, key: str) -> str:
        return self.server.launch(PACK, key, CHECKS)

    def partition(self, key: str) -> Partition:
        answer = self.server.ask(_PARTITION, key={"path": PACK}, partition=key)
        node = answer["assetNodeOrError"]
        latest = node["assetMaterializations"]
        return Partition(
            stale=node["staleStatus"],
            causes=node["staleCauses"],
            run_id=latest[0]["runId"] if latest else None,
            tags={tag["key"]: tag["value"] for tag in latest[0]["tags"]} if latest else {},
            metadata=dict(map(_entry, latest[0]["metadataEntries"])) if latest else {},
        )

    def statuses(self) -> dict[str, list[str]]:
        """Keys by status: materialized, failed, materializing, unmaterialized."""
        answer = self.server.ask(_STATUSES, key={"path": PACK})
        found = answer["assetNodeOrError"]["assetPartitionStatuses"]
        return {name.removesuffix("Partitions"): sorted(keys) for name, keys in found.items()}

    def observed(self) -> list[str]:
        answer = self.server.ask(_OBSERVATIONS, key={"path": RAW_DROP})
        events = answer["assetNodeOrError"]["assetObservations"]
        return [event["description"] for event in events if event["description"]]

    def ticks(self) -> list[dict[str, Any]]:
        sensor = {**self.server.selector, "sensorName": "macroxue_drops"}
        answer = self.server.ask(_TICKS, sensor=sensor)
        ticks: list[dict[str, Any]] = answer["sensorOrError"]["sensorState"]["ticks"]
        return ticks

    def runs(self, key: str) -> list[Run]:
        """The runs of one partition, the latest first."""
        found = self.server.ask(_RUNS, partition=key)["runsOrError"]["results"]
        return [_run(item) for item in found]

    def backfill(self, keys: list[str]) -> str:
        params = {"assetSelection": [{"path": PACK}], "partitionNames": keys}
        launched = self.server.ask(_BACKFILL, params=params)["launchPartitionBackfill"]
        assert "backfillId" in launched, launched
        return str(launched["backfillId"])

    def backfilled(self, backfill: str) -> tuple[str, list[Run]]:
        found = self.server.ask(_BACKFILL_STATUS, id=backfill)["partitionBackfillOrError"]
        return found["status"], [_run(item) for item in found["runs"]]


def _entry(entry: dict[str, Any]) -> tuple[str, Any]:
    """Name and value of a metadata entry; numbers come as text, so that none is cut short."""
    name, *values = entry.values()
    (value,) = values or [None]
    if "intRepr" in entry:
        value = int(entry["intRepr"])
    elif "floatRepr" in entry:
        value = float(entry["floatRepr"])
    elif "jsonString" in entry:
        value = json.loads(entry["jsonString"])
    return name, value


def _run(item: dict[str, Any]) -> Run:
    tags = {tag["key"]: tag["value"] for tag in item["tags"]}
    return Run(item["runId"], item["status"], tags)


def until(what: str, holds: Callable[[], Any], seconds: float = 90.0) -> Any:
    """Wait until `holds` gives something true, and give it; the answer last seen goes in the error.

    Polls without pause but for a blink, since what is waited for may be short.
    """
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}; last: {found!r}"
        time.sleep(0.1)
    return found


def drop(folder: Path, seed: int, games: int = 2) -> Path:
    """A small sample drop; a folder that stands there is replaced, as by a person."""
    fresh = folder.parent.parent / f"fresh-{folder.name}"
    write_drop(fresh, seed=seed, games=games, max_moves=60, depth=6)
    if folder.exists():
        shutil.rmtree(folder)
    fresh.rename(folder)
    return folder


def enlarge(folder: Path, times: int) -> None:
    """Make a drop hold each of its games `times` times, under other names, by hard links."""
    for file in sorted(folder.iterdir()):
        for copy in range(1, times):
            os.link(file, folder / f"copy{copy:04}_{file.name}")

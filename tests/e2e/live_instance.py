"""A copy of the checkout with a `dagster dev`, a data root and drops of its own, for tests."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets import worker
from assets.versions import PARTITION, RANGE
from bench.servers import Server, copy_checkout, plain_environment
from gristmill import provenance
from gristmill.layout import WORK
from gristmill.macroxue.samples import write_drop
from tests.e2e import run_tags
from tests.postgres import use_in
from tests.sample_root import SampleRoot

PACK, RAW_DROP = ["macroxue", "pack"], ["macroxue", "raw_drop"]
CHECKS = ["built", "intact", "lawful"]
RUNNING = ("QUEUED", "NOT_STARTED", "STARTING", "STARTED")

_PARTITION = """query($key: AssetKeyInput!, $partition: String, $partitions: [String!]) {
  assetNodeOrError(assetKey: $key) { ... on AssetNode {
    staleStatus(partition: $partition)
    staleCauses(partition: $partition) { key { path } partitionKey category reason }
    assetMaterializations(partitions: $partitions, limit: 1) {
      runId tags { key value } metadataEntries { label
        ... on IntMetadataEntry { intRepr } ... on FloatMetadataEntry { floatRepr }
        ... on TextMetadataEntry { text } ... on PathMetadataEntry { path }
        ... on MarkdownMetadataEntry { mdStr } ... on JsonMetadataEntry { jsonString } } } } } }"""
_STATUSES = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses {
    materializedPartitions failedPartitions materializingPartitions
    unmaterializedPartitions } } } } }"""
_OBSERVATIONS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) {
  ... on AssetNode { assetObservations(limit: 50) { description partition } } } }"""
_TICKS = """query($sensor: SensorSelector!) { sensorOrError(sensorSelector: $sensor) {
  ... on Sensor { sensorState { ticks(limit: 20) { status skipReason error { message } } } } } }"""
_SCHEDULE = """query($schedule: ScheduleSelector!) {
  scheduleOrError(scheduleSelector: $schedule) {
    ... on Schedule { scheduleState { status } } } }"""
_RUNS = """{ runsOrError {
  ... on Runs { results { runId status tags { key value } } } } }"""
_BACKFILL = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(
  backfillParams: $params) { __typename ... on LaunchBackfillSuccess { backfillId }
  ... on PythonError { message } } }"""
_ADD = """mutation($code: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: $code, partitionsDefName: $name, partitionKey: $key) {
    __typename } }"""
_BACKFILL_STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status runs { runId status tags { key value } } } } }"""


@dataclass(frozen=True)
class Partition:
    """What the UI shows of one partition of an asset, or of an asset without any."""

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


class LiveInstance:
    """The project as a person has it: a checkout, a data root, a running `dagster dev`.

    Where a method takes no asset, it is about the packs of 2048. root: a data root and what its
    instance knows, to begin with copies of both; default an empty data root. history: address of
    the instance in Postgres; default in files of the checkout.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        root: SampleRoot | None = None,
        history: str | None = None,
    ) -> None:
        self.checkout, self.data = folder / "checkout", folder / "data"
        self._environment = {**(environment or {}), "GRISTMILL_DATA": str(self.data)}
        copy_checkout(self.checkout)
        if history is not None:
            use_in(self.checkout, history)
        if root is not None:
            shutil.copytree(root.data, self.data, symlinks=True)
            for name in ("history", "schedules"):
                storage = self.checkout / ".dagster/storage"
                shutil.copytree(root.home / name, storage / name, dirs_exist_ok=True)
        self.drops.mkdir(parents=True, exist_ok=True)
        # A person's copies take longer than those of a test, which two looks see complete.
        (self.data / "gristmill.toml").write_text("[inbox]\nsettle_seconds = 0\n")
        self.server = self.start()

    @property
    def drops(self) -> Path:
        return self.data / "drops/macroxue"

    def pack(self, key: str) -> Path:
        return self.data / "macroxue/packs" / key

    def start(self) -> Server:
        self.server = Server(self.checkout, "gristmill", self._environment)
        self.server.wait()
        return self.server

    def kill(self) -> None:
        """SIGKILL to `dagster dev` and all that it started; returns when none of it is left."""
        processes = self.server.processes()
        self.server.kill()
        until(
            "all are gone", lambda: not any(Path(f"/proc/{one}/stat").exists() for one in processes)
        )

    def gristmill(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`gristmill ...` in the copy, with nothing set but what the server has."""
        return subprocess.run(
            [sys.executable, "-m", "gristmill.cli", *words],
            cwd=self.checkout,
            env={**plain_environment(), **self._environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def launch(self, key: str, asset: list[str] = PACK) -> str:
        return self.server.launch(asset, key, CHECKS)

    def partition(self, key: str | None, asset: list[str] = PACK) -> Partition:
        """What the UI shows of a partition; of an asset without any, for None."""
        keys = None if key is None else [key]
        answer = self.server.ask(_PARTITION, key={"path": asset}, partition=key, partitions=keys)
        node = answer["assetNodeOrError"]
        latest = node["assetMaterializations"]
        return Partition(
            stale=node["staleStatus"],
            causes=node["staleCauses"],
            run_id=latest[0]["runId"] if latest else None,
            tags={tag["key"]: tag["value"] for tag in latest[0]["tags"]} if latest else {},
            metadata=dict(map(_entry, latest[0]["metadataEntries"])) if latest else {},
        )

    def statuses(self, asset: list[str] = PACK) -> dict[str, list[str]]:
        """Keys by status: materialized, failed, materializing, unmaterialized."""
        answer = self.server.ask(_STATUSES, key={"path": asset})
        found = answer["assetNodeOrError"]["assetPartitionStatuses"]
        return {name.removesuffix("Partitions"): sorted(keys) for name, keys in found.items()}

    def observed(self, asset: list[str] = RAW_DROP, partition: str | None = None) -> list[str]:
        """What observations of an asset say, the latest first."""
        answer = self.server.ask(_OBSERVATIONS, key={"path": asset})
        return [
            event["description"]
            for event in answer["assetNodeOrError"]["assetObservations"]
            if event["description"] and partition in (None, event["partition"])
        ]

    def ticks(self, name: str = "macroxue_drops") -> list[dict[str, Any]]:
        sensor = {**self.server.selector, "sensorName": name}
        answer = self.server.ask(_TICKS, sensor=sensor)
        ticks: list[dict[str, Any]] = answer["sensorOrError"]["sensorState"]["ticks"]
        return ticks

    def is_on(self, schedule: str) -> bool:
        selector = {**self.server.selector, "scheduleName": schedule}
        answer = self.server.ask(_SCHEDULE, schedule=selector)
        return bool(answer["scheduleOrError"]["scheduleState"]["status"] == "RUNNING")

    def runs(self, key: str | None) -> list[Run]:
        """The runs of one partition, or for None all runs; the latest first."""
        found = map(_run, self.server.ask(_RUNS)["runsOrError"]["results"])
        return [
            run for run in found if key is None or key in map(run.tags.get, (PARTITION, *RANGE))
        ]

    def ended(self, key: str, count: int = 1) -> list[Run]:
        """The runs of a partition, once there are `count` and all have ended."""

        def settled() -> list[Run] | None:
            runs = self.runs(key)
            under_way = any(run.status in RUNNING for run in runs)
            return runs if len(runs) >= count and not under_way else None

        found: list[Run] = until(f"{count} runs of {key} have ended", settled)
        assert len(found) == count
        return found

    def worker_at_work(self, run_id: str, folder: Path) -> int:
        """The process of a run, once it writes into its slot, the folder `folder`."""

        def process() -> str | None:
            if not any(folder.glob("staging*")):
                return None
            return run_tags.tag(self.checkout, run_id, worker.TAG)

        signature: str = until(f"the run is at work in {folder.name}", process)
        return int(signature.split(":")[1])

    def add_partition(self, name: str, key: str) -> None:
        """Add a key to dynamic partitions, as the UI's dialog does."""
        answer = self.server.ask(_ADD, code=self.server.selector, name=name, key=key)
        added = answer["addDynamicPartition"]
        assert added == {"__typename": "AddDynamicPartitionSuccess"}, added

    def backfill(self, keys: list[str], assets: Sequence[list[str]] = (PACK,)) -> str:
        """Start a backfill as the UI's dialog does; its id."""
        params = {
            "assetSelection": [{"path": asset} for asset in assets],
            "partitionNames": keys,
            "fromFailure": False,
            "tags": [],
        }
        launched = self.server.ask(_BACKFILL, params=params)["launchPartitionBackfill"]
        assert "backfillId" in launched, launched
        return str(launched["backfillId"])

    def backfilled(self, backfill: str, seconds: float = 600.0) -> tuple[str, list[Run]]:
        """Status and runs of a backfill, once it and all of them have ended."""

        # The daemon looks at backfills every 30 s, and an asset waits for those before it.
        def over() -> tuple[str, list[Run]] | None:
            found = self.server.ask(_BACKFILL_STATUS, id=backfill)["partitionBackfillOrError"]
            runs = [_run(item) for item in found["runs"]]
            under_way = any(run.status in RUNNING for run in runs)
            ended = found["status"].startswith(("COMPLETED", "FAILED", "CANCELED"))
            return (found["status"], runs) if ended and not under_way else None

        found: tuple[str, list[Run]] = until(f"the backfill {backfill} is over", over, seconds)
        return found

    def shows(self, asset: list[str], key: str | None, record: provenance.Record) -> Partition:
        """What the UI shows of a partition; it is fresh, and what `record` says."""
        shown = self.partition(key, asset)
        assert (shown.stale, shown.causes) == ("FRESH", []), (asset, key)
        assert shown.tags["dagster/data_version"] == record.data_version
        assert shown.metadata["bytes"] == sum(output.bytes for output in record.outputs)
        return shown


def slot_of(folder: Path, partition: str | None = None) -> Path:
    """Where the artifact `folder`, or one of the partitions that share it, is built."""
    name = folder.name if partition is None else f"{folder.name}@{partition}"
    return folder.parent / WORK / "slots" / name


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


def until(what: str, holds: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Wait until `holds` gives something true, and give it; an error has the last answer."""
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

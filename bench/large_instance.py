"""A Dagster instance with thousands of partitions and runs, written without building anything.

`python -m bench.large_instance FOLDER --partitions 2000` fills the instance of a checkout's copy.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.events import AssetObservationData, DagsterEvent, StepMaterializationData
from dagster._core.events.log import EventLogEntry
from dagster._core.utils import make_new_run_id

from assets import worker
from assets.versions import DATA_VERSION

PACK, RAW_DROP = dg.AssetKey(["macroxue", "pack"]), dg.AssetKey(["macroxue", "raw_drop"])
PARTITIONS, _JOB = "macroxue_drops", "__ASSET_JOB"
_RUNLESS = ""  # the run id of events that no run reported


def add_run(
    instance: dg.DagsterInstance,
    asset: dg.AssetKey,
    keys: Iterable[str | None],
    *,
    ended: float | None = None,
    status: dg.DagsterRunStatus = dg.DagsterRunStatus.SUCCESS,
    tags: dict[str, str] | None = None,
    text: str = "",
) -> str:
    """Write a run that materialized some partitions of an asset; its id.

    ended: seconds since 1970, default now. text: a metadata value of each event.
    """
    at = time.time() if ended is None else ended
    run = dg.DagsterRun(
        job_name=_JOB,
        run_id=make_new_run_id(),
        status=status,
        tags=tags or {},
        asset_selection=frozenset([asset]),
    )
    instance.run_storage.add_run(run)
    _store(
        instance,
        [
            _entry(
                dg.AssetMaterialization(
                    asset,
                    partition=key,
                    metadata={"text": text},
                    tags={DATA_VERSION: f"version-{key}"},
                ),
                run.run_id,
                at,
            )
            for key in keys
        ],
    )
    return run.run_id


def _entry(
    reported: dg.AssetMaterialization | dg.AssetObservation, run_id: str, at: float
) -> EventLogEntry:
    is_built = isinstance(reported, dg.AssetMaterialization)
    kind = "ASSET_MATERIALIZATION" if is_built else "ASSET_OBSERVATION"
    data = StepMaterializationData(reported) if is_built else AssetObservationData(reported)
    return EventLogEntry(
        error_info=None,
        level="debug",
        user_message="",
        run_id=run_id,
        timestamp=at,
        job_name=_JOB,
        dagster_event=DagsterEvent(kind, _JOB, event_specific_data=data),
    )


def _store(instance: dg.DagsterInstance, entries: Sequence[EventLogEntry]) -> None:
    """Store events of one run and asset as `store_event` does."""
    storage: Any = instance.event_log_storage
    if not entries:
        return
    if not hasattr(storage, "path_for_shard"):
        for entry in entries:
            storage.store_event(entry)
        return
    _give_log(storage, entries[0].run_id)
    worker.store_events(storage, entries)


def _give_log(storage: Any, run_id: str) -> None:
    """Give a run an empty log by a copy: to make one takes longer than all else."""
    log, empty = Path(storage.path_for_shard(run_id)), Path(storage.path_for_shard("empty"))
    if log.exists():
        return
    if not empty.exists():
        with storage.run_connection(empty.stem):
            pass
    shutil.copy(empty, log)
    storage._initialized_dbs.add(run_id)


def fill(
    instance: dg.DagsterInstance, partitions: Sequence[str], per_run: int, rounds: int = 1
) -> list[str]:
    """Write the arrivals and packs of some partitions; the ids of the runs.

    per_run: partitions of one run. rounds: how often each partition was built.
    """
    instance.add_dynamic_partitions(PARTITIONS, partitions)
    for kind in (dg.AssetObservation, dg.AssetMaterialization):
        arrivals = (
            kind(asset_key=RAW_DROP, partition=key, tags={DATA_VERSION: f"drop-{key}"})
            for key in partitions
        )
        _store(instance, [_entry(arrival, _RUNLESS, time.time()) for arrival in arrivals])
    return [
        add_run(instance, PACK, partitions[start : start + per_run], text="x" * 2000)
        for _ in range(rounds)
        for start in range(0, len(partitions), per_run)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the checkout's copy, with its dagster.yaml")
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--per-run", type=int, default=100)
    given = parser.parse_args()
    keys = [f"d{number:05}" for number in range(given.partitions)]
    with dg.DagsterInstance.from_config(str(given.folder)) as instance:
        print(len(fill(instance, keys, given.per_run)), "runs")


if __name__ == "__main__":
    main()

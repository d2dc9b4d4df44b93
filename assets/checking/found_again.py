"""Verdicts without a file that has them: taken from the disk and from events."""

from __future__ import annotations

from typing import Final

import dagster as dg

from assets.checking import rules
from assets.checking.rules import Checked
from assets.checking.verdicts import Verdict, Verdicts
from assets.failures import Problem
from assets.versions import DATA_VERSION, latest, latest_events
from gristmill.data_root.reports import BUILT
from gristmill.printable import plain
from resources import Lake

_KEYS_IN_QUERY: Final = 1000
_MOST_LINES: Final = 3


def adopt(instance: dg.DagsterInstance, lake: Lake, checked: Checked, verdicts: Verdicts) -> None:
    """Take what stands on disk, and from events what was reported and which builds failed.

    instance: the Dagster instance.
    lake: the data root.
    checked: the asset.
    verdicts: those that are kept stay.
    """
    keys = checked.partitions(instance)
    if keys is not None:
        newest = latest(instance, checked.asset.key, list(keys))
        reported = {key: (version, "") for key, (version, _) in newest.items()}
    else:
        records = instance.fetch_materializations(checked.asset.key, limit=1).records
        events = [record.asset_materialization for record in records]
        versions = [(event.tags or {}).get(DATA_VERSION, "") for event in events if event]
        reported = {"": (versions[0], "")} if versions else {}
    verdicts.reported(checked.name, reported)
    if BUILT in checked.rules:
        verdicts.only(checked.name, BUILT, failed_builds(instance, checked, lake))
    # At last: what a killed process has begun is begun again.
    verdicts.register_all(checked.name, rules.places(checked.scope(lake, None, None, verdicts)))


def failed_builds(instance: dg.DagsterInstance, checked: Checked, lake: Lake) -> list[Verdict]:
    """Returns the verdict on each partition whose last build failed, by the events of builds."""
    observed = dg.DagsterEventType.ASSET_OBSERVATION
    asset, keys = checked.asset.key, checked.partitions(instance)
    if keys is None:
        records = list(instance.fetch_observations(asset, limit=1).records)
        since = instance.fetch_materializations(asset, limit=1).records
        records = [one for one in records if not since or one.storage_id > since[0].storage_id]
    else:
        last = latest_events(instance, asset, list(keys), observed)
        good = latest_events(instance, asset, list(last))
        ids = [event for key, event in last.items() if event > good.get(key, 0)]
        records = []
        for start in range(0, len(ids), _KEYS_IN_QUERY):
            some = ids[start : start + _KEYS_IN_QUERY]
            wanted = dg.AssetRecordsFilter(asset, storage_ids=some)
            records += instance.fetch_observations(wanted, limit=len(some)).records
    failed = []
    for record in records:
        event = record.asset_observation
        said = {name: value.value for name, value in event.metadata.items()} if event else {}
        if event is not None and said.get("status") == "failed":
            problem = Problem(str(said.get("reason")), "", str(said.get("cure", "")))
            failed.append(failed_build(checked.name, event.partition or "", problem, lake))
    return failed


def failed_build(asset: str, subject: str, problem: Problem, lake: Lake) -> Verdict:
    """Returns the verdict on a partition whose build failed."""
    below = problem.below(lake.root)
    lines = [line for line in below.reason.splitlines() if line.strip()][:_MOST_LINES]
    command = rules.command(asset, subject)
    cure = below.cure or f"mend what the problem names, then build again: {command}"
    return Verdict(subject, "", plain("\n".join(lines), rules.LONGEST_PROBLEM), cure)

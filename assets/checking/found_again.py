"""Verdicts without a file that has them: taken from the disk, from events, from what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import dagster as dg

from assets.checking import rules
from assets.checking.results import findings_in
from assets.checking.rules import Checked, Rule
from assets.checking.verdicts import BUILT, Verdict, Verdicts
from assets.failures import Problem
from assets.versions import latest_events
from gristmill.printable import plain
from resources import Lake

_KEYS_IN_QUERY: Final = 1000
_MOST_LINES: Final = 3

Shown = Callable[[Rule], dg.AssetCheckEvaluation | None]


def adopt(
    instance: dg.DagsterInstance, lake: Lake, checked: Checked, verdicts: Verdicts, shown: Shown
) -> None:
    """Take what stands on disk, the builds that failed by events, and the findings that are shown.

    instance: the Dagster instance.
    lake: the data root.
    checked: the asset.
    verdicts: those that are kept; a finding among them stays.
    shown: takes a check, returns what it said last.

    A finding that is shown replaces a kept verdict without one, since that may be the older one.
    """
    places = rules.places(checked.scope(lake, None, None, verdicts))
    verdicts.register_all(checked.name, places)
    for rule in checked.rules.values():
        if rule.name == BUILT:
            failed = failed_builds(instance, checked, lake)
            verdicts.only(checked.name, BUILT, failed)
            continue
        found = {one.subject for one in verdicts.problems(checked.name, rule.name)}
        verdicts.keep(
            checked.name,
            rule.name,
            [
                Verdict(subject, places[subject].data_version if subject in places else "", *said)
                for subject, said in findings_in(shown(rule)).items()
                if subject not in found and (subject in places or _is_there(lake, subject))
            ],
        )


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


def _is_there(lake: Lake, subject: str) -> bool:
    """Whether a finding is about a record or a folder of no partition, and that is still there."""
    return "/" in subject and (lake.root / subject).exists()

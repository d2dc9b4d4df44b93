"""Reasoning corpora in Dagster: normalised records, token shards, alignment, daily reports."""

from assets.family import Family
from assets.reasoning.assets import ASSETS, CHECKS
from assets.reasoning.choices import CHOICES
from assets.reasoning.drops import available
from assets.reasoning.inbox import INBOXES
from assets.reasoning.local_builds import LOCAL, report_of_now
from assets.reasoning.partitions import today
from assets.reasoning.records import REPORT
from assets.reasoning.schedules import JOBS, SCHEDULES
from resources import Lake, ReasoningHub


def _available(lake: Lake) -> set[str]:
    """Partitions of splits, and the current day for the report; none where there is no split."""
    splits = available(lake)
    return splits | {today().isoformat()} if splits else set()


FAMILY = Family(
    assets=ASSETS,
    checks=CHECKS,
    jobs=JOBS,
    inboxes=INBOXES,
    schedules=SCHEDULES,
    hubs={"reasoning": ReasoningHub()},
    available=_available,
    local=LOCAL,
    builds={REPORT: report_of_now},
    choices=CHOICES,
)

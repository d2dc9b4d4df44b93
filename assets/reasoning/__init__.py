"""Reasoning corpora in Dagster: normalised records, token shards, alignment, daily reports."""

from assets.family import family_of
from assets.reasoning.checks import reasoning_checks
from assets.reasoning.partitions import reasoning_days
from assets.reasoning.schedules import JOBS, SCHEDULES
from gristmill.data_root import DataRoot
from gristmill.reasoning.builds import today
from gristmill.reasoning.format.corpora import PARTITIONS
from gristmill.reasoning.raw.ready import available, keys_of
from gristmill.reasoning.raw.recipes import wanted
from resources import ReasoningHub


def _available(lake: DataRoot) -> set[str]:
    """Splits, datasets, and the current day for the report; none where there is no split."""
    splits = available(lake)
    return splits | {*wanted(lake), today().isoformat()} if splits else set()


FAMILY = family_of(
    "reasoning",
    {"reasoning_days": reasoning_days},
    inboxes=lambda _: {
        "reasoning": {"keys_of": keys_of, "built_in": lambda: {"reasoning_splits": PARTITIONS}}
    },
    checks=reasoning_checks,
    jobs=JOBS,
    schedules=SCHEDULES,
    hubs={"reasoning": ReasoningHub()},
    available=_available,
)

"""Reasoning corpora in Dagster: normalised records, token shards, alignment, daily reports."""

import dagster as dg

from assets.family import family_of
from assets.reasoning.checks import reasoning_checks
from assets.reasoning.schedules import JOBS, SCHEDULES
from gristmill.corpora.corpus import PARTITIONS
from gristmill.corpora.raw.chat.messages import available as chats
from gristmill.corpora.raw.chat.messages import keys_of as chat_keys_of
from gristmill.data_root import DataRoot
from gristmill.reasoning.builds import today
from gristmill.reasoning.raw import available, keys_of, wanted

reasoning_days = dg.DailyPartitionsDefinition(start_date="2026-01-01", timezone="UTC", end_offset=1)
"""Days in UTC, the current one included: a report describes what is published now."""


def _available(lake: DataRoot) -> set[str]:
    """Splits, conversations and datasets, and the report's day where there is a split."""
    splits = available(lake)
    return splits.union(chats(lake), wanted(lake), [today().isoformat()] if splits else [])


FAMILY = family_of(
    "reasoning",
    {"reasoning_days": reasoning_days},
    inboxes=lambda _: {
        "reasoning": {"keys_of": keys_of, "built_in": lambda: {"reasoning_splits": PARTITIONS}},
        "chat": {"keys_of": chat_keys_of},
    },
    checks=reasoning_checks,
    jobs=JOBS,
    schedules=SCHEDULES,
    available=_available,
)

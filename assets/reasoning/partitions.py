"""The partitions of the reasoning assets: corpus and split, and the days of the reports."""

import dagster as dg

from gristmill.reasoning.format.corpora import PARTITIONS

reasoning_splits = dg.StaticPartitionsDefinition(list(PARTITIONS))
reasoning_days = dg.DailyPartitionsDefinition(start_date="2026-01-01", timezone="UTC", end_offset=1)
"""Days in UTC, the current one included: a report describes what is published now."""

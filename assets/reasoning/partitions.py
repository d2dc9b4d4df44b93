"""The partitions of the reasoning assets: the days of the reports; splits are dynamic."""

import dagster as dg

reasoning_days = dg.DailyPartitionsDefinition(start_date="2026-01-01", timezone="UTC", end_offset=1)
"""Days in UTC, the current one included: a report describes what is published now."""

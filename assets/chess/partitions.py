"""The months of the elite database that are over: partitions of chess that no drop adds."""

from typing import Final

import dagster as dg

from gristmill.chess.raw.months import FIRST_MONTH

chess_months: Final = dg.MonthlyPartitionsDefinition(start_date=FIRST_MONTH, fmt="%Y-%m")
"""Months from the first archive on, each from its end in UTC; the keys are `YYYY-MM`."""

"""The partitions of the chess assets: months, from the first one of the archive on."""

import dagster as dg

chess_months = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")

"""Partition definitions, and nothing else."""

import dagster as dg

macroxue_drops = dg.DynamicPartitionsDefinition(name="macroxue_drops")
macroxue_pools = dg.DynamicPartitionsDefinition(name="macroxue_pools")
chess_months = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")

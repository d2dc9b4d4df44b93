"""Partition definitions, and nothing else."""

import dagster as dg

from gristmill.synth.build.source import NUMBERS

macroxue_drops = dg.DynamicPartitionsDefinition(name="macroxue_drops")
macroxue_pools = dg.DynamicPartitionsDefinition(name="macroxue_pools")
chess_months = dg.MonthlyPartitionsDefinition(start_date="2020-06", fmt="%Y-%m")
synth_shards = dg.StaticPartitionsDefinition(list(NUMBERS))

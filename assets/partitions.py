"""Partition definitions, and nothing else."""

import dagster as dg

macroxue_drops = dg.DynamicPartitionsDefinition(name="macroxue_drops")
macroxue_pools = dg.DynamicPartitionsDefinition(name="macroxue_pools")

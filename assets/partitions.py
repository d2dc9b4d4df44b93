"""Partition definitions, and nothing else."""

import dagster as dg

macroxue_drops = dg.DynamicPartitionsDefinition(name="macroxue_drops")

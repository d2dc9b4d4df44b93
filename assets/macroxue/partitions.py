"""The partitions of the 2048 assets: one for each drop or pool that has arrived."""

import dagster as dg

macroxue_drops = dg.DynamicPartitionsDefinition(name="macroxue_drops")
macroxue_pools = dg.DynamicPartitionsDefinition(name="macroxue_pools")

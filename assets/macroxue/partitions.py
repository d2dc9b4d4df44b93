"""The partitions of the 2048 assets: drops and pools, known once they arrive."""

import dagster as dg

macroxue_drops = dg.DynamicPartitionsDefinition(name="macroxue_drops")
macroxue_pools = dg.DynamicPartitionsDefinition(name="macroxue_pools")

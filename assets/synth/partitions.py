"""The partitions of the SYNTH assets: four shards."""

import dagster as dg

from gristmill.synth.builders.source import NUMBERS

synth_shards = dg.StaticPartitionsDefinition(list(NUMBERS))

"""SYNTH in Dagster: raw Parquet, Harmony shards and Megatron datasets."""

import dagster as dg

from assets.family import family_of
from gristmill.corpora.raw.chat.messages import available as chats
from gristmill.synth.builders.drop_in_use import available
from gristmill.synth.raw import NUMBERS

FAMILY = family_of(
    "synth",
    {"synth_shards": dg.StaticPartitionsDefinition(list(NUMBERS))},
    available=lambda lake: {*available(lake), *chats(lake)},
)

"""The inboxes of SYNTH: folders of raw Parquet files, and ready Harmony folders."""

from assets.inbox import Inbox
from assets.synth import assets
from assets.synth.partitions import synth_shards
from gristmill.synth.builders import source

INBOXES = [
    Inbox(
        folder=folder,
        raw_drop=raw_drop.key,
        partitions=synth_shards,
        targets=[assets.harmony, assets.smoke_shards, assets.kd_shards],
    )
    for folder, raw_drop in ((source.RAW, assets.raw), (source.READY, assets.ready_harmony))
]

"""The inboxes of all families: which drops start which assets."""

from assets import macroxue, partitions, synth, synth_builds
from gristmill.macroxue import drops
from gristmill.synth import sources
from sensors.raw_drops import Inbox
from sensors.settling import TOML

_SYNTH_TARGETS = [synth.harmony, synth.smoke_shards, synth.kd_shards]
_SYNTH_FOLLOWERS = [synth.harmony_manifest, synth.smoke_manifest, synth.kd_manifest]

INBOXES = [
    Inbox(
        family="macroxue",
        raw_drop=macroxue.raw_drop.key,
        partitions=partitions.macroxue_drops,
        targets=[macroxue.pack, macroxue.values],
        refuse=drops.refusal,
    ),
    Inbox(
        family="pools",
        raw_drop=macroxue.pool_members.key,
        partitions=partitions.macroxue_pools,
        targets=[macroxue.pool],
        refuse=macroxue.pool_refusal,
        shape=TOML,
    ),
    *(
        Inbox(
            family=family,
            raw_drop=raw_drop.key,
            partitions=partitions.synth_shards,
            targets=_SYNTH_TARGETS,
            refuse=synth_builds.refusal,
            followers=_SYNTH_FOLLOWERS,
        )
        for family, raw_drop in (
            (sources.RAW, synth.raw),
            (sources.READY, synth.ready_harmony),
        )
    ),
]

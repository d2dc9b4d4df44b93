"""The inboxes of all families: which drops start which assets."""

from assets import chess, chess_drops, macroxue, macroxue_members, partitions, synth, synth_drops
from gristmill.chess.months import month_in
from gristmill.macroxue import drops
from gristmill.synth import sources
from sensors.raw_drops import Inbox
from sensors.settling import TOML, Shape

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
        refuse=macroxue_members.pool_refusal,
        shape=TOML,
    ),
    Inbox(
        family="chess",
        raw_drop=chess.raw_drop.key,
        partitions=partitions.chess_months,
        targets=chess.MONTH,
        job=chess.chess_month,
        refuse=chess_drops.drop_refusal,
        shape=Shape(chess_drops.ENDINGS, key_in=month_in),
    ),
    *(
        Inbox(
            family=family,
            raw_drop=raw_drop.key,
            partitions=partitions.synth_shards,
            targets=_SYNTH_TARGETS,
            refuse=synth_drops.refusal,
            followers=_SYNTH_FOLLOWERS,
        )
        for family, raw_drop in (
            (sources.RAW, synth.raw),
            (sources.READY, synth.ready_harmony),
        )
    ),
]

"""The inboxes of all families: which drops start which assets."""

from assets import macroxue, partitions
from gristmill.macroxue import drops
from sensors.raw_drops import Inbox
from sensors.settling import TOML

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
]

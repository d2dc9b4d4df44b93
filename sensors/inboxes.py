"""The inboxes of all families: which drops start which assets."""

from assets import macroxue, partitions
from gristmill.macroxue import drops
from sensors.raw_drops import Inbox

INBOXES = [
    Inbox(
        family="macroxue",
        raw_drop=macroxue.raw_drop.key,
        partitions=partitions.macroxue_drops,
        targets=[macroxue.pack],
        refuse=drops.refusal,
    ),
]

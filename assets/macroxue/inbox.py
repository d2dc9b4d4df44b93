"""The inboxes of 2048: folders of self-play logs, and files that name the packs of a pool."""

from assets.inbox import Inbox
from assets.macroxue import assets
from assets.macroxue.partitions import macroxue_drops, macroxue_pools

INBOXES = [
    Inbox(
        folder="macroxue",
        raw_drop=assets.raw_drop.key,
        partitions=macroxue_drops,
        targets=[assets.pack, assets.values],
    ),
    Inbox(
        folder="pools",
        raw_drop=assets.pool_members.key,
        partitions=macroxue_pools,
        targets=[assets.pool],
    ),
]

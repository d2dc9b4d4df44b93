"""The inboxes of 2048: folders of self-play logs, and files that name the packs of a pool."""

from assets.inbox import Inbox
from assets.macroxue import assets
from assets.macroxue.partitions import macroxue_drops, macroxue_pools
from assets.macroxue.pool_members import pool_refusal
from gristmill.inbox import TOML
from gristmill.macroxue.raw import drops

INBOXES = [
    Inbox(
        folder="macroxue",
        raw_drop=assets.raw_drop.key,
        partitions=macroxue_drops,
        targets=[assets.pack, assets.values],
        refuse=drops.refusal,
    ),
    Inbox(
        folder="pools",
        raw_drop=assets.pool_members.key,
        partitions=macroxue_pools,
        targets=[assets.pool],
        refuse=pool_refusal,
        shape=TOML,
    ),
]

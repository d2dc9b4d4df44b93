"""The inboxes of 2048: folders of self-play logs, and files that name the packs of a pool."""

from pathlib import Path

from assets.inbox import Inbox
from assets.macroxue import assets
from assets.macroxue.partitions import macroxue_drops, macroxue_pools
from assets.macroxue.pool_members import pool_refusal
from gristmill.inbox import TOML
from gristmill.macroxue.raw import drops
from resources import Lake


def drop_refusal(path: Path) -> str | None:
    """Returns why a drop cannot be packed, or None.

    path: the drop, in `drops/macroxue/`.
    """
    return drops.refusal(path, Lake(data_root=str(path.parents[2])).link_rule())


INBOXES = [
    Inbox(
        folder="macroxue",
        raw_drop=assets.raw_drop.key,
        partitions=macroxue_drops,
        targets=[assets.pack, assets.values],
        refuse=drop_refusal,
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

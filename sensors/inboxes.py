"""The inboxes of all families: which drops start which assets."""

from assets import chess, chess_drops, macroxue, partitions
from gristmill.chess.months import month_in
from gristmill.macroxue import drops
from sensors.raw_drops import Inbox
from sensors.settling import TOML, Shape

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
    Inbox(
        family="chess",
        raw_drop=chess.raw_drop.key,
        partitions=partitions.chess_months,
        targets=chess.MONTH,
        job=chess.chess_month,
        refuse=chess_drops.drop_refusal,
        shape=Shape(chess_drops.ENDINGS, key_in=month_in),
    ),
]

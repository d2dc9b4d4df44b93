"""The inbox of chess: files with the games of one month each."""

from assets.chess import assets, drops
from assets.chess.partitions import chess_months
from assets.inbox import Inbox
from gristmill.chess.raw.months import month_in
from gristmill.inbox import Shape

INBOXES = [
    Inbox(
        folder="chess",
        raw_drop=assets.raw_drop.key,
        partitions=chess_months,
        targets=assets.MONTH,
        job=assets.chess_month,
        refuse=drops.drop_refusal,
        shape=Shape(drops.ENDINGS, key_in=month_in),
    ),
]

"""The inbox of chess: files with the games of one month each."""

from assets.chess import assets
from assets.chess.partitions import chess_months
from assets.inbox import Inbox

INBOXES = [
    Inbox(
        folder="chess",
        raw_drop=assets.raw_drop.key,
        partitions=chess_months,
        targets=assets.MONTH,
        job=assets.chess_month,
    ),
]

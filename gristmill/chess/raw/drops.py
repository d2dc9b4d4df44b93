"""Drops of chess: one file for each month in `drops/chess/`.

Source: `docs/formats/chess.md#drops`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gristmill.chess.raw.months import has_ended, month_in
from gristmill.contract import BadInput
from gristmill.inbox.account import Account
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

ENDINGS: Final = (".zip", ".pgn", ".pgn.zst")


def account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of the files of a drop. Raises BadInput where it is refused."""
    month = month_in(drop.name)
    if month is None or not has_ended(month, datetime.now(UTC)):
        raise BadInput(
            drop,
            f"{month or drop.name} is not a month that has ended, from 2020-06 on: put the month "
            "into the file's name, as lichess_elite_2024-01.zip",
        )
    return Account({"": [drop.name]})

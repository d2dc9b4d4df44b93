"""Raw drops of an inbox: their states, and what becomes of their files.

Whether a drop is ready: `readiness.py`, by its marks (`marks.py`) and files (`listing.py`, which
also has the account of what becomes of each).
"""

from gristmill.inbox.listing import FOLDER, TOML, DropKind, Shape, named_few
from gristmill.inbox.marks import AT_ONCE, Settling
from gristmill.inbox.readiness import (
    ARRIVING,
    GONE,
    READY,
    REFUSED,
    UNREAD,
    WAITS,
    Arrival,
    Asked,
    Judgement,
    Look,
    Standing,
    State,
    look,
    present_drops,
)

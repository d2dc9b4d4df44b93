"""When a raw drop has arrived: functions over folders, for the sensors and the command."""

from gristmill.inbox.arrivals import look
from gristmill.inbox.judging import Asked, Judgement
from gristmill.inbox.kind import DropKind
from gristmill.inbox.listing import changed_since, named_few
from gristmill.inbox.marks import AT_ONCE, Settling
from gristmill.inbox.present import present_drops
from gristmill.inbox.shape import FOLDER, TOML, Shape
from gristmill.inbox.state import (
    ARRIVING,
    GONE,
    READY,
    REFUSED,
    TAKEN,
    UNREAD,
    WAITS,
    Arrival,
    Look,
    Refusal,
    Standing,
    State,
    Waiting,
)

__all__ = [
    "ARRIVING",
    "AT_ONCE",
    "FOLDER",
    "GONE",
    "READY",
    "REFUSED",
    "TAKEN",
    "TOML",
    "UNREAD",
    "WAITS",
    "Arrival",
    "Asked",
    "DropKind",
    "Judgement",
    "Look",
    "Refusal",
    "Settling",
    "Shape",
    "Standing",
    "State",
    "Waiting",
    "changed_since",
    "look",
    "named_few",
    "present_drops",
]

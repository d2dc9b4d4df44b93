"""When a raw drop has arrived: functions over folders, for the sensors and the command."""

from gristmill.inbox.arrivals import look
from gristmill.inbox.listing import changed_since, named_few
from gristmill.inbox.marks import AT_ONCE, Settling
from gristmill.inbox.present import present_drops
from gristmill.inbox.shape import FOLDER, TOML, Shape
from gristmill.inbox.state import (
    ARRIVING,
    VANISHED,
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
    "TOML",
    "VANISHED",
    "Arrival",
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

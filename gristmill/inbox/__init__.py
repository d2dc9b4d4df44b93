"""When a raw drop has arrived: functions over folders, for the sensors and the command."""

from gristmill.inbox.arrivals import look, present_drops
from gristmill.inbox.listing import FOLDER, TOML, Shape, named_few
from gristmill.inbox.state import Arrival, Look, Refusal, State, Waiting

__all__ = [
    "FOLDER",
    "TOML",
    "Arrival",
    "Look",
    "Refusal",
    "Shape",
    "State",
    "Waiting",
    "look",
    "named_few",
    "present_drops",
]

"""What assets reach outside for: the data root, and later hubs and archives."""

from resources.hub import CorporaHub
from resources.lake import Lake

__all__ = ["CorporaHub", "Lake"]

"""What assets reach outside for: the data root, archives, hubs."""

from resources.elite import EliteArchive
from resources.hub import CorporaHub
from resources.lake import Lake

__all__ = ["CorporaHub", "EliteArchive", "Lake"]

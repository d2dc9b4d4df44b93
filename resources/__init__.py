"""What assets reach outside for: the data root, archives, and later hubs."""

from resources.elite import EliteArchive
from resources.lake import Lake

__all__ = ["EliteArchive", "Lake"]

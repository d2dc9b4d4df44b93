"""What assets reach outside for: the data root, archives, hubs."""

from resources.corpora_hub import CorporaHub
from resources.elite_archive import EliteArchive
from resources.lake import Lake

__all__ = ["CorporaHub", "EliteArchive", "Lake"]

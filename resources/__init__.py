"""Resources: the data root, and the archive of chess months."""

from resources.elite_archive import EliteArchive
from resources.lake import Lake, NotBuilt, NotRebuilt

__all__ = [
    "EliteArchive",
    "Lake",
    "NotBuilt",
    "NotRebuilt",
]

"""Resources: the data root, the archive of chess months, the hubs of the other families."""

from resources.elite_archive import EliteArchive
from resources.hubs import CorporaHub, PuzzlesHub, ReasoningHub
from resources.lake import Lake, NotBuilt, NotRebuilt

__all__ = [
    "CorporaHub",
    "EliteArchive",
    "Lake",
    "NotBuilt",
    "NotRebuilt",
    "PuzzlesHub",
    "ReasoningHub",
]

"""Resources: the data root, the archive of chess months, the hubs of the other families."""

from resources.corpora_hub import CorporaHub
from resources.elite_archive import EliteArchive
from resources.lake import Lake, NotBuilt, NotRebuilt
from resources.puzzles_hub import PuzzlesHub
from resources.reasoning_hub import ReasoningHub

__all__ = [
    "CorporaHub",
    "EliteArchive",
    "Lake",
    "NotBuilt",
    "NotRebuilt",
    "PuzzlesHub",
    "ReasoningHub",
]

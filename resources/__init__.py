"""Resources: the data root, the archive of chess months, the hub of SYNTH."""

from resources.corpora_hub import CorporaHub
from resources.elite_archive import EliteArchive
from resources.lake import Lake

__all__ = ["CorporaHub", "EliteArchive", "Lake"]

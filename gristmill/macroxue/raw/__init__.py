"""What arrives: raw drops of game logs and pool files, found, unpacked and parsed.

The tables of settings are here because the declaration of the family, which needs them, loads
nothing heavy.
"""

from __future__ import annotations

from typing import Final

from gristmill.macroxue.config import MergeConfig, ViewConfig
from gristmill.settings.tables import Table

POOL_TABLE: Final = Table(
    "macroxue/pool", MergeConfig, not_set={"names": "the names are those in `members`"}
)
"""The table of a pool's settings, in its file and in `gristmill.toml` of the data root."""
VIEW_TABLE: Final = Table("macroxue/training_view", ViewConfig)
"""The same for a training view."""

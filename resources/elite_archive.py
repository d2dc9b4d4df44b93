"""The archive of elite games, as Dagster sees it: where months come from, and how patiently."""

from __future__ import annotations

import os
from typing import Any

import dagster as dg
from pydantic import Field

from gristmill.chess.raw.archive_config import URL_TEMPLATE, ArchiveConfig, FetchConfig

VARIABLE = "GRISTMILL_ELITE_ARCHIVE"
_FILE = URL_TEMPLATE.rpartition("/")[2]


class EliteArchive(dg.ConfigurableResource[Any]):
    """The server that publishes a month's games as one ZIP."""

    base_address: str = Field(
        default="",
        description=f"Holds `{_FILE}`; empty for the variable {VARIABLE}, else the elite database.",
    )
    timeout_seconds: float = Field(default=30.0, description="Of one read from the server.")
    attempts: int = Field(default=5, description="In a row without a new byte.")
    backoff_seconds: float = Field(default=1.0, description="After the first failure; doubles.")

    def config(self) -> ArchiveConfig:
        """How the library is to fetch. The variable is read when a month is asked for."""
        base = self.base_address or os.environ.get(VARIABLE) or URL_TEMPLATE.rpartition("/")[0]
        patience = FetchConfig(
            timeout=self.timeout_seconds, attempts=self.attempts, backoff=self.backoff_seconds
        )
        return ArchiveConfig(url_template=f"{base.rstrip('/')}/{_FILE}", fetch=patience)

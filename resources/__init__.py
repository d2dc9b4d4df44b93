"""Resources: the data root (`lake.py`), and the archive of chess months."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field

from gristmill.chess.config import URL_TEMPLATE, VARIABLE
from resources.lake import Lake, NotBuilt, NotRebuilt

__all__ = [
    "EliteArchive",
    "Lake",
    "NotBuilt",
    "NotRebuilt",
]


_FILE = URL_TEMPLATE.rpartition("/")[2]


class EliteArchive(dg.ConfigurableResource[Any]):
    """The server that publishes a month's games as one ZIP.

    base_address: address of the folder with the ZIP files.
    timeout_seconds: for one read from the server.
    attempts: how many in a row may fail without a new byte.
    backoff_seconds: pause after the first failure; it doubles with each further one.
    """

    base_address: str = Field(
        default="",
        description=f"Folder with `{_FILE}`; default: variable {VARIABLE}, else the database.",
    )
    timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="Timeout of one read from the server; above 0, at most 86,400.",
    )
    attempts: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="Attempts in a row without a new byte; 1 to 1,000.",
    )
    backoff_seconds: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        description="Pause after a failure, which doubles; 0 to 3,600.",
    )

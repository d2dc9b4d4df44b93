"""Resources: the data root, whose methods `gristmill/data_root/` has, and the archive of chess."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from gristmill.chess.config import URL_TEMPLATE, VARIABLE
from gristmill.data_root import DataRoot, NotBuilt, NotRebuilt
from gristmill.layout import root_of
from gristmill.run import kernels
from gristmill.run.ray_parts import RayParts
from gristmill.run.workers import on_other_machines
from gristmill.settings.tables import LOCAL, RUN, RunSettings

__all__ = ["CHECKOUT", "LOCATION", "EliteArchive", "Lake", "NotBuilt", "NotRebuilt"]

CHECKOUT = Path(__file__).resolve().parent.parent
LOCATION = "gristmill"
"""Name of the code location, as in workspace.yaml."""


class Lake(dg.ConfigurableResource[Any], DataRoot):
    """The data root: `data_root`, else the variable GRISTMILL_DATA, else `data/` in the checkout.

    The variable is read for each path, so that a change needs no restart of the code server.

    data_root: path of the data root; default empty.
    """

    data_root: str = ""

    @property
    def root(self) -> Path:
        """The absolute path of the data root."""
        return root_of(CHECKOUT, self.data_root)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Let compiled functions use the data root, before a run needs one.

        context: of the resource; not used.
        """
        kernels.fall_back_to(self.root)

    @contextmanager
    def engine(self) -> Iterator[None]:
        """Let builds within make their parts where `[run]` in the data root's gristmill.toml says.

        Raises BadInput if the file is not TOML, or if the table is wrong.
        """
        settings = RunSettings(**self.settings(RUN.name))
        if settings.engine == LOCAL:
            yield
            return
        engine = RayParts(
            settings.ray_address, settings.ray_cpus, settings.ray_memory, settings.ray_retries
        )
        with on_other_machines(engine):
            yield


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

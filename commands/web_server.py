"""The program `python -m commands.web_server`: Dagster's web server behind `LocalRequests`.

It takes the options of `dagster-webserver`. `gristmill ui` starts it: see `services.py`.
"""

from __future__ import annotations

from typing import Any

import dagster_webserver.app
from dagster_webserver.cli import main
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware

from commands.local_requests import LocalRequests


class LocalWebserver(DagsterWebserver[Any, Any]):
    """Dagster's web server; what a page of another site sends is refused."""

    def build_middleware(self) -> list[Middleware]:
        """Returns the middleware, the outermost first."""
        return [Middleware(LocalRequests), *super().build_middleware()]


if __name__ == "__main__":
    # The program makes its application from the class of this name.
    dagster_webserver.app.DagsterWebserver = LocalWebserver  # type: ignore[attr-defined]
    main()  # type: ignore[no-untyped-call]

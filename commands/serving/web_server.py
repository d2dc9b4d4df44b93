"""The program `python -m commands.serving.web_server`: Dagster's pages behind `LocalRequests`."""

from __future__ import annotations

from typing import Any

import dagster_webserver.app
from dagster_webserver.cli import main
from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from assets import worker
from gristmill.browse.commands import KEEP
from gristmill.browse.web.app import docs_routes
from gristmill.browse.web.app import routes as browse_routes
from gristmill.browse.web.local_requests import LocalRequests
from resources import Lake


class LocalWebserver(DagsterWebserver[Any, Any]):
    """Dagster's web server with the pages of `docs/` and of artifacts; other sites are refused."""

    def build_middleware(self) -> list[Middleware]:
        """Returns the middleware, the outermost first."""
        return [Middleware(LocalRequests), *super().build_middleware()]

    def build_routes(self) -> list[BaseRoute]:
        """Returns the routes; the first that fits a path answers."""
        root = Lake().root
        browsed = browse_routes(root, root / KEEP, has_dagster=True)
        return [*docs_routes(), *browsed, *super().build_routes()]  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    worker.tune_databases()
    # The program makes its application from the class of this name.
    dagster_webserver.app.DagsterWebserver = LocalWebserver  # type: ignore[attr-defined]
    main()  # type: ignore[no-untyped-call]

"""The program `python -m commands.serving.web_server`: Dagster's pages behind `LocalRequests`.

It serves the site of `docs/` below /docs/ as `make docs` left it, else the files of `docs/`.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, Final

import dagster_webserver.app
from dagster_webserver.cli import main
from dagster_webserver.webserver import DagsterWebserver
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

from assets import worker
from gristmill.browse.commands import KEEP
from gristmill.browse.web.app import routes as browse_routes
from gristmill.browse.web.local_requests import LocalRequests
from resources import CHECKOUT, Lake

PAGES, SITE = CHECKOUT / "docs", CHECKOUT / "build/docs"
# The site has scripts in its pages, and searches in a worker. A browser asks nobody else.
_POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)


class LocalWebserver(DagsterWebserver[Any, Any]):
    """Dagster's web server with the pages of `docs/` and of artifacts; other sites are refused."""

    def build_middleware(self) -> list[Middleware]:
        """Returns the middleware, the outermost first."""
        return [Middleware(LocalRequests), *super().build_middleware()]

    def build_routes(self) -> list[BaseRoute]:
        """Returns the routes; the first that fits a path answers."""
        root = Lake().root
        browsed = browse_routes(root, root / KEEP)
        return [*docs_routes(), *browsed, *super().build_routes()]  # type: ignore[no-untyped-call]


def docs_routes() -> list[BaseRoute]:
    """Returns the routes of `docs/`, read-only."""
    return [Route(path, _page) for path in ("/docs", "/docs/{path:path}")]


async def _page(request: Request) -> Response:
    """A file of the site, or of `docs/` where the site has none. Raises HTTPException of 404."""
    if "path" not in request.path_params:
        return RedirectResponse("docs/")
    name = request.path_params["path"]
    page = PurePosixPath(name)
    if page.suffix == ".md":  # MkDocs names the index of a folder `index.html`
        made = "index" if page.stem == "README" else page.stem
        if (await _sent(SITE, str(page.with_name(f"{made}.html")), request)) is not None:
            return RedirectResponse(f"{made}.html")
    answer = await _sent(SITE, name or "index.html", request)
    answer = answer or await _sent(PAGES, name or "README.md", request)
    if answer is None:
        raise HTTPException(404, "There is no such page: `make docs` makes the site of docs/.")
    return answer


async def _sent(folder: Path, name: str, request: Request) -> Response | None:
    """A file below a folder; None where there is none. A link that leads out of it is none."""
    try:
        answer = await StaticFiles(directory=folder, check_dir=False).get_response(
            name, request.scope
        )
    except HTTPException:
        return None
    answer.headers["Content-Security-Policy"] = _POLICY
    if name.endswith(".md"):
        answer.headers["Content-Type"] = "text/plain; charset=utf-8"
    return answer


if __name__ == "__main__":
    worker.tune_databases()
    # The program makes its application from the class of this name.
    dagster_webserver.app.DagsterWebserver = LocalWebserver  # type: ignore[attr-defined]
    main()  # type: ignore[no-untyped-call]

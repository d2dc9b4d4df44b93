"""The routes of `/docs/`: the site that `make docs` puts into this package and its wheel."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

SITE: Final = Path(__file__).parent / "site"
# The site has scripts in its pages, and searches in a worker. A browser asks nobody else.
_POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
_NO_SITE: Final = """<!doctype html><title>Gristmill: docs</title>
<p>The site of the docs is not here yet.
<p><code>make ui</code> makes it beside the UI, in about ten seconds once what makes it is
installed: this page then shows it. <code>make docs</code> makes it alone, and says what fails, as
where there is no network. Until then the pages are in <code>docs/</code> of a checkout.
"""


def routes() -> list[Route]:
    """The routes of the site, read-only."""
    return [Route(path, _page) for path in ("/docs", "/docs/{path:path}")]


async def _page(request: Request) -> Response:
    """A file of the site. Raises HTTPException of 404, unless there is no site."""
    if "path" not in request.path_params:
        return RedirectResponse("docs/")
    if not SITE.is_dir():
        return HTMLResponse(_NO_SITE, 503, {"Content-Security-Policy": _POLICY, "Refresh": "3"})
    name = request.path_params["path"]
    if (page := PurePosixPath(name)).suffix == ".md":  # as assets and pages on a forge name it
        made = page.with_name(f"{'index' if page.stem == 'README' else page.stem}.html")
        await _sent(str(made), request)
        return RedirectResponse(made.name)
    return await _sent(name or "index.html", request)


async def _sent(name: str, request: Request) -> Response:
    """A file of the site. Raises HTTPException where there is none, or a link leads out of it."""
    files = StaticFiles(directory=SITE, check_dir=False)
    try:
        answer = await files.get_response(name, request.scope)
    except HTTPException as error:
        raise HTTPException(404, "There is no such page of the docs.") from error
    answer.headers["Content-Security-Policy"] = _POLICY
    return answer

"""The pages of `docs/` as the web server shows them: below /docs/, read-only, without a network."""

from __future__ import annotations

import html
import re
from collections.abc import MutableMapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.staticfiles import StaticFiles

CHECKOUT: Final = Path(__file__).resolve().parents[2]
SITE: Final = CHECKOUT / "build/docs"
INDEX: Final = "README.md"
_PICTURES: Final = {".png": "image/png", ".svg": "image/svg+xml"}
_LONGEST: Final = 200
# A page needs no script; its pictures are in the same folder.
_POLICY: Final = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"
# The site has scripts in its pages, and searches in a worker. A browser asks nobody else.
_SITE_POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; }}
body {{ margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; }} th, td {{ border: 1px solid #888; padding: .2rem .5rem; }}
pre {{ overflow-x: auto; padding: .5rem; border: 1px solid #888; }} img {{ max-width: 100%; }}
</style></head><body>
{body}</body></html>
"""


async def page(request: Request) -> Response:
    """Returns the page or the picture that a request names, or 404 with a sentence.

    request: to `/docs` or `/docs/<path>`; the path parameter `path` is below `docs/`.
    """
    if "path" not in request.path_params:
        return RedirectResponse("docs/")
    return await answer(CHECKOUT / "docs", SITE, request.path_params["path"], request.scope)


async def answer(docs: Path, site: Path, name: str, scope: MutableMapping[str, Any]) -> Response:
    """Returns a file of the site, or of `docs/` where the site has none, or 404 with a sentence.

    docs: the folder of the pages. site: of the site, which need not exist.
    name: POSIX path below it; empty for the index. scope: of the request.
    """
    wanted = PurePosixPath(name)
    is_below = not wanted.is_absolute() and ".." not in wanted.parts
    if is_below and name.isprintable() and len(name) < _LONGEST:
        made, source = _swapped(name, ".md", ".html"), _swapped(name, ".html", ".md")
        if made != name and (site / made).is_file():
            return RedirectResponse(PurePosixPath(made).name)
        if (site / (name or "index.html")).is_file():
            response = await StaticFiles(directory=site).get_response(name or "index.html", scope)
            response.headers["Content-Security-Policy"] = _SITE_POLICY
            return response
        if source != name and (docs / source).is_file():
            return RedirectResponse(PurePosixPath(source).name)
        path = (docs / (name or INDEX)).resolve()
        if docs.resolve() in path.parents and path.is_file():
            if path.suffix == ".md":
                index = "../" * name.count("/") or "./"
                text = rendered(path.read_text("utf-8"), index if name else "")
                return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY})
            if path.suffix in _PICTURES:
                return FileResponse(path, media_type=_PICTURES[path.suffix])
    return PlainTextResponse(
        "There is no such page below docs/ of the checkout.\n", status_code=404
    )


def _swapped(name: str, ending: str, other: str) -> str:
    """The same page in the other form: MkDocs names the index of a folder `index.html`."""
    path = PurePosixPath(name)
    if path.suffix != ending:
        return name
    names = {"README.md": "index.html", "index.html": "README.md"}
    return str(path.with_name(names.get(path.name, path.stem + other)))


def rendered(text: str, index: str = "") -> str:
    """Returns Markdown as an HTML page; its comments are left out, other HTML is shown as text.

    text: Markdown with tables. Headings get the anchors that GitHub gives them.
    index: address of the list of pages, which the page begins with; default none.
    """
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    markdown.add_render_rule("html_block", _shown)
    markdown.add_render_rule("html_inline", _shown)
    tokens = markdown.parse(text)
    title = "Gristmill"
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", anchor(content.content))
            if opening.tag == "h1":
                title = content.content
    body = markdown.renderer.render(tokens, markdown.options, {})
    link = f'<p><a href="{index}">All pages</a></p>\n' if index else ""
    return _PAGE.format(title=html.escape(title), body=link + body)


def _shown(_: object, tokens: Sequence[Token], number: int, *_rest: object) -> str:
    """HTML as text; a comment is for those who edit the page."""
    text = tokens[number].content
    return "" if text.startswith("<!--") else html.escape(text)


def anchor(heading: str, separator: str = "-") -> str:
    """Returns the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)

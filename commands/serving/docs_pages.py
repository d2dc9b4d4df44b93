"""The pages of `docs/` as the web server shows them: below /docs/, read-only, without a network.

The descriptions of assets link to them (`assets/groups.py`). See also `web_server.py`.
"""

from __future__ import annotations

import html
import re
from itertools import pairwise
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

_PICTURES: Final = {".png": "image/png", ".svg": "image/svg+xml"}
_LONGEST: Final = 200
# A page needs no script; its pictures are in the same folder.
_POLICY: Final = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"
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

    request: to `/docs/<path>`; the path parameter `path` is below `docs/`.
    """
    return answer(Path(__file__).resolve().parents[2] / "docs", request.path_params["path"])


def answer(docs: Path, name: str) -> Response:
    """Returns a file of a folder: Markdown as HTML, a picture as it is, or 404 with a sentence.

    docs: the folder.
    name: POSIX path below it.
    """
    path = (docs / name).resolve() if name.isprintable() else docs
    is_below = docs.resolve() in path.parents
    if is_below and len(name) < _LONGEST and path.is_file():
        if path.suffix == ".md":
            return HTMLResponse(
                rendered(path.read_text("utf-8")), headers={"Content-Security-Policy": _POLICY}
            )
        if path.suffix in _PICTURES:
            return Response(path.read_bytes(), media_type=_PICTURES[path.suffix])
    return PlainTextResponse(
        "There is no such page below docs/ of the checkout.\n", status_code=404
    )


def rendered(text: str) -> str:
    """Returns Markdown as an HTML page; HTML in it is shown as text.

    text: Markdown with tables. Headings get the anchors that GitHub gives them.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title = "Gristmill"
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", _anchor(content.content))
            if opening.tag == "h1":
                title = content.content
    body = markdown.renderer.render(tokens, markdown.options, {})
    return _PAGE.format(title=html.escape(title), body=body)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

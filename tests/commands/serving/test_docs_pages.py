"""The pages of docs/ in the browser. See also `test_docs_site.py` and `tests/e2e/test_ui.py`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from commands.serving.docs_pages import answer, page, rendered
from tests.paths import CHECKOUT

ROUTES = [Route("/docs", page), Route("/docs/{path:path}", page)]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "formats").mkdir(parents=True)
    (folder / "README.md").write_text("# Index\n")
    (folder / "one.md").write_text("# One & two\n\n| a |\n|---|\n| <b>x</b> |\n<!-- why -->\n")
    (folder / "formats/two.md").write_text("## Row layouts, `x`\n")
    (folder / "a.png").write_bytes(b"png")
    (folder / "notes.txt").write_text("no")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    return folder


@pytest.fixture
def site(docs: Path) -> Path:
    folder = docs.parent / "site"
    folder.mkdir()
    (docs.parent / "secret.html").write_text("secret")
    (folder / "index.html").write_text("<p>front")
    (folder / "one.html").write_text("<p>one of the site")
    (folder / "app.js").write_text("1")
    return folder


def got(docs: Path, name: str, site: Path = Path("/no/site")) -> Response:
    scope = {"type": "http", "method": "GET", "headers": []}
    return asyncio.run(answer(docs, site, name, scope))


def text_of(docs: Path, name: str) -> str:
    return bytes(got(docs, name).body).decode()


def place(response: Response) -> tuple[int, str | None]:
    return response.status_code, response.headers.get("location")


def test_markdown_is_a_page_with_tables_without_comments_and_with_other_html_as_text(
    docs: Path,
) -> None:
    response = got(docs, "one.md")
    text = bytes(response.body).decode()
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<title>One &amp; two</title>" in text
    assert "<td>&lt;b&gt;x&lt;/b&gt;</td>" in text
    assert "why" not in text


def test_html_that_stands_alone_is_text() -> None:
    assert "&lt;script&gt;" in rendered("<script>\nx()\n</script>\n")


def test_headings_have_the_anchors_that_links_name(docs: Path) -> None:
    assert 'id="row-layouts-x"' in text_of(docs, "formats/two.md")


def test_the_folder_is_an_index_and_every_other_page_leads_to_it(docs: Path) -> None:
    assert '<h1 id="index">Index</h1>' in text_of(docs, "")
    assert "All pages" not in text_of(docs, "")
    assert '<a href="./">All pages</a>' in text_of(docs, "one.md")
    assert '<a href="../">All pages</a>' in text_of(docs, "formats/two.md")


def test_pictures_are_sent_as_they_are(docs: Path) -> None:
    response = got(docs, "a.png")
    assert (response.status_code, response.media_type) == (200, "image/png")


@pytest.mark.parametrize(
    "name",
    [
        *(".", "formats", "three.md", "notes.txt", "../secret.md", "link.md", "/etc/hosts"),
        *("a\0.md", "x" * 5000 + ".md", "../secret.html", "formats/../../secret.html"),
    ],
)
def test_nothing_else_is_sent(docs: Path, site: Path, name: str) -> None:
    for response in (got(docs, name), got(docs, name, site)):
        assert place(response) == (404, None)
        assert b"secret" not in response.body


def test_a_site_is_served_in_place_of_the_pages(docs: Path, site: Path) -> None:
    for name, kind in (("", "text/html"), ("one.html", "text/html"), ("app.js", "text/javascript")):
        response = got(docs, name, site)
        assert response.status_code == 200
        assert response.headers["content-type"].startswith(kind)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "http" not in policy
    assert place(got(docs, "one.md", site)) == (307, "one.html")
    assert place(got(docs, "README.md", site)) == (307, "index.html")


def test_what_the_site_does_not_have_is_shown_from_the_pages(docs: Path, site: Path) -> None:
    assert got(docs, "formats/two.md", site).status_code == 200
    assert got(docs, "a.png", site).status_code == 200


def test_an_address_of_the_site_leads_to_the_page_where_no_site_is(docs: Path) -> None:
    assert place(got(docs, "formats/two.html")) == (307, "two.md")
    assert place(got(docs, "index.html")) == (307, "README.md")
    assert place(got(docs, "three.html")) == (404, None)


def test_the_pages_of_the_checkout_are_served_by_their_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("commands.serving.docs_pages.SITE", CHECKOUT / "no_site")
    client = TestClient(Starlette(routes=ROUTES))
    assert "<h1" in client.get("/docs/macroxue.md").text
    assert client.get("/docs/formats/chess.md").status_code == 200
    assert client.get("/docs/..%2fREADME.md").status_code == 404
    assert client.post("/docs/macroxue.md").status_code == 405
    index = client.get("/docs")
    assert index.url.path == "/docs/"
    assert 'href="macroxue.md"' in index.text

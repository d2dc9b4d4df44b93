"""The pages of docs/ in the browser. See also `tests/e2e/test_ui.py`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from commands.serving.docs_pages import answer, page, rendered
from tests.paths import CHECKOUT

PAGES = sorted((CHECKOUT / "docs").rglob("*.md"))
LINK = re.compile(r'(?:href|src)="([^"]*)"')


@cache
def page_of(file: Path) -> str:
    return rendered(file.read_text())


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "formats").mkdir(parents=True)
    (folder / "one.md").write_text("# One & two\n\n| a |\n|---|\n| <b>x</b> |\n")
    (folder / "formats/two.md").write_text("## Row layouts, `x`\n")
    (folder / "a.png").write_bytes(b"png")
    (folder / "notes.txt").write_text("no")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    return folder


def test_markdown_is_a_page_with_tables_and_without_its_html(docs: Path) -> None:
    response = answer(docs, "one.md")
    text = bytes(response.body).decode()
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<title>One &amp; two</title>" in text
    assert "<td>&lt;b&gt;x&lt;/b&gt;</td>" in text


def test_headings_have_the_anchors_that_links_name(docs: Path) -> None:
    assert 'id="row-layouts-x"' in bytes(answer(docs, "formats/two.md").body).decode()


def test_pictures_are_sent_as_they_are(docs: Path) -> None:
    response = answer(docs, "a.png")
    assert (response.body, response.media_type) == (b"png", "image/png")


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "formats", "three.md", "notes.txt", "../secret.md", "link.md", "/etc/hosts"),
        *("a\0.md", "x" * 5000 + ".md"),
    ],
)
def test_nothing_else_is_sent(docs: Path, name: str) -> None:
    response = answer(docs, name)
    assert response.status_code == 404
    assert b"secret" not in response.body


def test_the_pages_of_the_checkout_are_served_by_their_path() -> None:
    client = TestClient(Starlette(routes=[Route("/docs/{path:path}", page)]))
    assert "<h1" in client.get("/docs/macroxue.md").text
    assert client.get("/docs/formats/chess.md").status_code == 200
    assert client.get("/docs/..%2fREADME.md").status_code == 404
    assert client.post("/docs/macroxue.md").status_code == 405


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_links_between_pages_lead_somewhere(file: Path) -> None:
    for link in LINK.findall(page_of(file)):
        place, _, anchor = link.partition("#")
        if "://" in place or link.startswith("mailto:"):
            continue
        target = (file.parent / place).resolve() if place else file
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert f'id="{anchor}"' in page_of(target), link

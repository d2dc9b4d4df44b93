"""The site of docs/ below /docs/, and what stands there before it is made."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from gristmill.browse.web import app


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    (folder / "formats").mkdir(parents=True)
    for name in ("index.html", "one.html", "app.js", "../secret.md", "../secret.html"):
        (folder / name).write_text(f"{name} of the site")
    (folder / "link.html").symlink_to(tmp_path / "secret.html")
    monkeypatch.setattr(app, "SITE", folder)
    return folder


@pytest.fixture
def client(site: Path) -> TestClient:
    return TestClient(Starlette(routes=app.docs_routes()), follow_redirects=False)


def test_before_the_site_is_made_each_page_says_how_and_asks_again(client, monkeypatch, tmp_path):
    monkeypatch.setattr(app, "SITE", tmp_path / "none")
    for name in ("", "one.md", "formats/two.html"):
        answer = client.get(f"/docs/{name}")
        assert (answer.status_code, answer.headers["refresh"]) == (503, "3")
        assert "make docs" in answer.text


@pytest.mark.parametrize(
    "name",
    [
        *(".", "formats", "three.md", "three.html", "%2e%2e/secret.md", "link.md", "%2fetc/hosts"),
        *("a%00.md", "x" * 5000 + ".md", "..%2fsecret.html", "formats%2f..%2f../secret.html"),
        *("link.html", "..%2fsecret.md", "%2e%2e%2fsecret.md"),
    ],
)
def test_nothing_else_is_sent(client, name):
    answer = client.get(f"/docs/{name}")
    if name == ".":  # the client sends the folder's own address
        assert "secret" not in answer.text
    else:
        assert (answer.status_code, "location" in answer.headers) == (404, False)
        assert "secret" not in answer.text
    assert client.post("/docs/").status_code == 405


def test_the_site_is_served_and_pages_lead_into_it(client):
    for name, kind in (("", "text/html"), ("one.html", "text/html"), ("app.js", "text/javascript")):
        answer = client.get(f"/docs/{name}")
        assert answer.text == f"{name or 'index.html'} of the site"
        assert answer.headers["content-type"].startswith(kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "http" not in policy
    for name, place in (("one.md", "one.html"), ("README.md", "index.html"), ("/docs", "docs/")):
        answer = client.get(name if name == "/docs" else f"/docs/{name}")
        assert (answer.status_code, answer.headers["location"]) == (307, place)

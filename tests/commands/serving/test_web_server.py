"""The program of the web server, and the site of docs/ that it serves as it is."""

import runpy
import sys
from pathlib import Path

import dagster_webserver.app
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from assets import worker
from commands.serving import web_server
from gristmill.browse.web.local_requests import LocalRequests


def test_the_program_serves_docs_refuses_other_sites_and_keeps_databases_small(monkeypatch, capsys):
    installed = []
    monkeypatch.setattr(worker, "tune_databases", lambda: installed.append(True))
    server = dagster_webserver.app.DagsterWebserver  # type: ignore[attr-defined]
    monkeypatch.setattr(dagster_webserver.app, "DagsterWebserver", server)
    monkeypatch.setattr(sys, "argv", ["web_server", "--version"])
    monkeypatch.delitem(sys.modules, web_server.__name__)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("commands.serving.web_server", run_name="__main__")
    assert ended.value.code == 0
    assert "version" in capsys.readouterr().out
    assert installed == [True]
    used = dagster_webserver.app.DagsterWebserver  # type: ignore[attr-defined]
    assert issubclass(used, server) and used is not server
    made = used.__new__(used)
    assert str(made.build_middleware()[0].cls) == str(LocalRequests)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    pages = tmp_path / "pages"
    (pages / "formats").mkdir(parents=True)
    for name, text in {
        **{"README.md": "# Index", "one.md": "# One", "formats/two.md": "<script>"},
        **{"a.png": "png", "../secret.md": "secret", "../secret.html": "secret"},
    }.items():
        (pages / name).write_text(text)
    (pages / "link.md").symlink_to(tmp_path / "secret.md")
    monkeypatch.setattr(web_server, "PAGES", pages)
    monkeypatch.setattr(web_server, "SITE", tmp_path / "site")
    return TestClient(Starlette(routes=web_server.docs_routes()), follow_redirects=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    for name in ("index.html", "one.html", "app.js"):
        (tmp_path / "site" / name).write_text(f"{name} of the site")
    (tmp_path / "site/link.html").symlink_to(tmp_path / "secret.html")
    return tmp_path / "site"


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("", "text/plain; charset=utf-8", "# Index"),
        ("one.md", "text/plain; charset=utf-8", "# One"),
        ("formats/two.md", "text/plain; charset=utf-8", "<script>"),
        ("a.png", "image/png", "png"),
    ],
)
def test_without_a_site_pages_are_text(client, name, kind, text):
    answer = client.get(f"/docs/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert answer.text == text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "name",
    [
        *(".", "formats", "three.md", "three.html", "%2e%2e/secret.md", "link.md", "%2fetc/hosts"),
        *("a%00.md", "x" * 5000 + ".md", "..%2fsecret.html", "formats%2f..%2f../secret.html"),
        *("link.html", "..%2fsecret.md", "%2e%2e%2fsecret.md"),
    ],
)
@pytest.mark.parametrize("has_site", [False, True])
def test_nothing_else_is_sent(client, request, name, has_site):
    if has_site:
        request.getfixturevalue("site")
    answer = client.get(f"/docs/{name}")
    if name == ".":  # the client sends the folder's own address
        assert "secret" not in answer.text
    else:
        assert (answer.status_code, "location" in answer.headers) == (404, False)
        assert "secret" not in answer.text
    assert client.post("/docs/").status_code == 405


def test_a_site_is_served_in_place_of_the_pages(client, site):
    for name, kind in (("", "text/html"), ("one.html", "text/html"), ("app.js", "text/javascript")):
        answer = client.get(f"/docs/{name}")
        assert answer.text == f"{name or 'index.html'} of the site"
        assert answer.headers["content-type"].startswith(kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "http" not in policy
    for name, place in (("one.md", "one.html"), ("README.md", "index.html"), ("/docs", "docs/")):
        answer = client.get(name if name == "/docs" else f"/docs/{name}")
        assert (answer.status_code, answer.headers["location"]) == (307, place)
    assert [client.get(f"/docs/{name}").text for name in ("formats/two.md", "a.png")] == [
        "<script>",
        "png",
    ]

"""The site of docs/: what its navigation holds, and the site that MkDocs makes of it."""

import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import griffe
import pytest
import uvicorn
from markdown_it import MarkdownIt
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from assets.family import GROUPS
from bench.servers import plain_environment
from commands.serving.docs_site import PACKAGES, Arguments, anchor, as_markdown, navigation
from gristmill.browse.web import app
from gristmill.browse.web.local_requests import LocalRequests
from tests.architecture.test_public_names import PUBLIC
from tests.e2e.browser import opened
from tests.free_port import free_port
from tests.paths import CHECKOUT

DOCS = CHECKOUT / "docs"
ARTICLE = re.compile(r"<article.*?>(.*?)</article>", re.DOTALL)
SHOWN = re.compile(r"<(li|tr|td|th|pre|h[1-6]|ul|ol|blockquote|img|em|strong|code)\b")
LINK = re.compile(r'<a\b[^>]* href="([^"]*)"')
ASKED_FOR = re.compile(r'<(?:link|script|img|source|iframe)\b[^>]* (?:href|src)="([^"]*)"')
HEADING = re.compile(r'<h[1-6] id="([^"]*)"')
ANCHOR = re.compile(r' (?:id|name)="?([^"> ]+)')


def listed(docs: Path) -> list[str]:
    index, *sections = navigation(docs)
    pages = [page for section in sections for held in section.values() for page in held]
    return [*map(str, index.values()), *(place for page in pages for place in page.values())]  # type: ignore[union-attr]


def missing(docs: Path) -> list[str]:
    """The pages that no section of docs/README.md lists, as `- [Title](page.md): sentence`."""
    found = {str(file.relative_to(docs)) for file in docs.rglob("*.md")}
    return sorted(found - set(listed(docs)))


# --- docstrings -------------------------------------------------------------

SOURCE = '''
"""A module."""
from typing import Annotated, ClassVar
from dataclasses import dataclass


def read(folder: str, first: int, last: int = 9) -> None:
    """Read a folder.

    folder: of the artifact,
        with its record.
    first, last: rows.

    note: this is text.
    """


@dataclass(frozen=True)
class Config:
    """What is read.

    rows: how many.
    """

    VERSION: ClassVar = "1"
    rows: Annotated[int, "at least 1"] = 3
'''


@pytest.fixture
def module(tmp_path: Path) -> griffe.Module:
    (tmp_path / "read.py").write_text(SOURCE)
    loaded = griffe.load(
        "read",
        search_paths=[tmp_path],
        extensions=griffe.load_extensions(Arguments),
        docstring_parser="google",
    )
    assert isinstance(loaded, griffe.Module)
    return loaded


def test_each_argument_has_a_bullet_and_the_signature_of_a_config_has_types_without_rules(module):
    shown = [module[name].docstring.value for name in ("read", "Config")]
    assert shown == [
        "Read a folder.\n\n- **folder**: of the artifact,\n    with its record.\n"
        "- **first, last**: rows.\n\n- **note**: this is text.",
        "What is read.\n\n- **rows**: how many.",
    ]
    shown = [(each.name, str(each.annotation)) for each in module["Config"].parameters]
    assert shown == [("self", "None"), ("rows", "int")]


def test_every_page_and_package_is_in_the_index_and_indented_code_is_fenced():
    text = "A.\n\n    for x in y:\n        x()\n\nEnd."
    assert as_markdown(text) == "A.\n\n```python\nfor x in y:\n    x()\n```\n\nEnd."
    assert missing(DOCS) == [], "list them in docs/README.md"
    pages = listed(DOCS)
    assert len(pages) == len(set(pages)) > 25
    assert all((DOCS / page).is_file() for page in pages)
    assert set(PUBLIC) <= set(PACKAGES)


# --- the navigation ----------------------------------------------------------


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "first-hour").mkdir()
    text = "# Docs\n\n- [No](no.md)\n\n## Chess\n\n- [Games](games.md): of chess\n\n## SYNTH\n"
    (tmp_path / "README.md").write_text(text)
    for name in ("games.md", "other.md", "first-hour/chess.md"):
        (tmp_path / name).write_text("# A\n")
    return tmp_path


def test_a_page_that_the_index_does_not_list_is_found_and_a_first_hour_comes_first(docs):
    assert missing(docs) == ["other.md"]
    expected = [
        {"Gristmill": "README.md"},
        {"Chess": [{"The first hour": "first-hour/chess.md"}, {"Games": "games.md"}]},
        {"SYNTH": []},
    ]
    assert navigation(docs) == expected
    index = docs / "README.md"
    listing = "\n\n- [The first hour](first-hour/chess.md): of chess\n- [Games]"
    index.write_text(index.read_text().replace("\n\n- [Games]", listing))
    assert navigation(docs) == expected


# --- the site ----------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder],
        cwd=CHECKOUT,
        env={**plain_environment(), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def text_of(html: Path) -> str:
    return html.read_text("utf-8")


def html_of(site: Path, page: str) -> Path:
    return site / page.replace("README", "index").replace(".md", ".html")


def shown_in(html: str) -> Counter[str]:
    """How often each kind of element is in a page, and each anchor of a heading."""
    return Counter([*SHOWN.findall(html), *HEADING.findall(html)])


def alone(text: str) -> str:
    """A page as a reader of Markdown shows it that knows nothing of the site."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", anchor(content.content))
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def dead_links(site: Path) -> list[tuple[str, str]]:
    """The links between pages that lead to no file, or to no place in it."""
    anchors: dict[Path, set[str]] = {}
    dead = []
    for file in site.rglob("*.html"):
        for link in LINK.findall(text_of(file)):
            place, _, anchor = unquote(link).partition("#")
            if "://" in place or file.name == "404.html":
                continue
            target = (file.parent / place).resolve() if place else file
            target = target / "index.html" if target.is_dir() else target
            if target.is_file() and target not in anchors:
                anchors[target] = set(ANCHOR.findall(text_of(target)))
            if not target.is_file() or (anchor and anchor not in anchors[target]):
                dead.append((file.name, link))
    return dead


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_place_in_it(site):
    assert dead_links(site) == []
    page = site / "scale.html"
    page.with_name("copy.html").write_text('<a href="none.html">a</a> <a href="scale.html#none">b')
    assert dead_links(site) == [("copy.html", "none.html"), ("copy.html", "scale.html#none")]
    page.with_name("copy.html").unlink()


@pytest.mark.slow
def test_no_page_asks_another_host_for_anything(site):
    asked = {link for file in site.rglob("*.html") for link in ASKED_FOR.findall(text_of(file))}
    assert len(asked) > 20
    assert [link for link in asked if "//" in link] == []
    styles = " ".join(text_of(file) for file in site.rglob("*.css"))
    assert re.findall(r"url\((?!['\"]?data:)|@import", styles) == []


@pytest.mark.slow
def test_the_site_shows_what_a_page_shows_by_itself(site):
    """Two readers of Markdown take the same lists, tables, blocks and anchors from it."""
    other = {}
    for page in listed(DOCS):
        by_itself = shown_in(alone((DOCS / page).read_text()))
        found = ARTICLE.search(text_of(html_of(site, page)))
        assert found is not None, page
        on_site = shown_in(found[1])
        if by_itself != on_site:
            other[page] = (by_itself - on_site, on_site - by_itself)
    assert other == {}


@pytest.mark.slow
def test_the_api_shows_every_public_name_with_what_it_says(site):
    unseen = [
        f"{package}.{name}"
        for package, names in PUBLIC.items()
        for name in names
        if f'id="{package}.{name}"' not in text_of(site / f"api/{package}.html")
    ]
    assert unseen == []
    text = text_of(site / "api/gristmill.macroxue.html")
    assert "A memory-mapped pack or pool" in text
    assert "<strong>pack</strong>: " in text


def test_a_search_shows_guides_before_formats_and_names(site):
    entries = json.loads((site / "search/search_index.json").read_text())["docs"]
    last = {entry["location"].partition("/")[0] for entry in entries if entry.get("boost", 1) < 1}
    assert {"api", "formats"} <= last
    boosts = {
        entry.get("boost", 1) for entry in entries if entry["location"].startswith("formats/")
    }
    assert max(boosts) < 0.3


ASKED: dict[str, str] = {
    "own columns of a CSV": "faq own-files corpora",
    "change a setting": "faq configuration",
    "delete a dataset": "faq command-line-operating",
    "Parquet to the hub": "faq consumers mirror",
    "Python 3.12": "faq",
    "macOS Windows": "faq",
    "uninstall": "faq",
    "what is a drop": "faq drops glossary",
    "without Dagster": "faq own-files",
    "own tokenizer": "faq tokenizers",
    "load in PyTorch": "faq training",
    "resume training": "training",
    "leaks of test questions": "leaks faq",
    "conversations": "chat",
    "PGN month": "chess first-hour/chess",
    "2048 logs": "macroxue first-hour/2048",
    "Sudoku": "puzzles",
    "loss mask": "chat synth training first-hour/synth",
    "drop refused": "drops troubleshooting faq",
    "trace bytes": "command-line faq",
}
"""What a newcomer types, and the pages of which one must be among the first three."""


@pytest.fixture
def application(site: Path, monkeypatch: pytest.MonkeyPatch) -> Starlette:
    monkeypatch.setattr(app, "SITE", site)
    return Starlette(routes=app.docs_routes(), middleware=[Middleware(LocalRequests)])


@pytest.mark.slow
def test_pages_of_assets_lead_into_the_site(application):
    client = TestClient(application, base_url="http://127.0.0.1:3000")
    for group in GROUPS.values():
        answer = client.get(f"/docs/{group.page}")
        assert (answer.status_code, answer.url.path.endswith(".html")) == (200, True)


@pytest.fixture
def address(application: Starlette) -> Iterator[str]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(application, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}/docs/"
    server.should_exit = True
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_person_finds_a_name_by_searching_in_a_browser(address, width):
    with opened(width) as context:
        context.set_default_timeout(90_000)
        page: Any = context.new_page()
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{address}macroxue.md#pools")
        assert page.url == f"{address}macroxue.html#pools"
        if width < 500:
            page.locator("label[for=__search]:visible").first.click()
        else:
            page.locator("[data-md-component=search-query]").click()
        page.keyboard.type("StepDataset")
        # While the name is typed, results of its beginning come and go.
        page.locator(
            ".md-search-result__link[href*='h=stepdataset'][href$='macroxue.StepDataset']"
        ).click()
        page.get_by_text("A memory-mapped pack or pool").wait_for()
        assert "/api/gristmill.macroxue.html" in page.url
    assert complaints == []
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


@pytest.mark.slow
def test_no_page_scrolls_sideways_on_a_small_screen(address, site):
    with opened(390) as context:
        page: Any = context.new_page()
        wide = []
        for file in sorted(site.rglob("*.html")):
            page.goto(f"{address}{file.relative_to(site)}", wait_until="commit")
            page.wait_for_selector("footer", state="attached")
            if page.evaluate("document.documentElement.scrollWidth") > 390:
                wide.append(file.name)
    assert wide == []


@pytest.mark.slow
def test_a_newcomer_finds_the_page_among_the_first_three(address):
    missed: dict[str, list[str]] = {}
    with opened(1280) as context:
        context.set_default_timeout(90_000)
        page: Any = context.new_page()
        for words, pages in ASKED.items():
            page.goto(f"{address}?q={quote(words)}")
            links = page.locator(".md-search-result__item > .md-search-result__link")
            links.first.wait_for()
            page.wait_for_timeout(300)
            found = [link.get_attribute("href") for link in links.all()[:3]]
            names = [
                urlsplit(each).path.partition("/docs/")[2].removesuffix(".html") for each in found
            ]
            if not {*names} & {*pages.split()}:
                missed[words] = names
    assert missed == {}

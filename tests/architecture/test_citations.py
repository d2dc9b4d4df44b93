"""Every citation in code, tests and documents resolves to a heading or a file of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gristmill.families import FAMILIES
from tests.paths import CHECKOUT

CITED = re.compile(r"\b(docs/[\w/.-]+\.md)(?:#([\w-]+))?")
LINKED = re.compile(r"\]\(([^)#\s]+\.(?:md|png|svg))?(?:#([\w-]+))?\)")
OUTSIDE = re.compile(
    r"\b(seed \d{3}\b|[Ss]pec \d|the spec\b|specs/|DESIGN\b|the design's|the SYNTH contract\b)"
)
"""Documents that the repository does not hold."""

CODE = [
    file.relative_to(CHECKOUT)
    for top in (
        "gristmill",
        "assets",
        "resources",
        "sensors",
        "commands",
        "tests",
        "bench",
        "examples",
    )
    for file in sorted((CHECKOUT / top).rglob("*.py"))
]
PAGES = [
    file.relative_to(CHECKOUT)
    for file in sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])
]


def slugs(page: Path) -> set[str]:
    """The anchors that a hosted view gives to the headings of a Markdown page."""
    found: dict[str, int] = {}
    fenced = False
    anchors = set()
    for line in page.read_text().splitlines():
        fenced ^= line.startswith("```")
        if fenced or not (heading := re.match(r"#{1,6} (.+)", line)):
            continue
        text = re.sub(r"[`*]", "", heading[1]).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        anchors.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return anchors


def _resolves(page: Path, slug: str | None) -> bool:
    return page.is_file() and (slug is None or slug in slugs(page))


@pytest.mark.parametrize("file", CODE, ids=str)
def test_a_citation_in_code_resolves(file: Path) -> None:
    text = (CHECKOUT / file).read_text()
    for page, slug in CITED.findall(text):
        assert _resolves(CHECKOUT / page, slug or None), f"{file} cites {page}#{slug}"
    if file.name != Path(__file__).name:
        outside = OUTSIDE.search(text)
        assert outside is None, f"{file} cites {outside}"


@pytest.mark.parametrize("file", PAGES, ids=str)
def test_a_link_in_a_page_resolves(file: Path) -> None:
    page = CHECKOUT / file
    for target, slug in LINKED.findall(page.read_text()):
        linked = (page.parent / target) if target else page
        assert _resolves(linked, slug or None), f"{file} links to {target}#{slug}"


@pytest.mark.parametrize("file", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=str)
def test_a_page_cites_no_document_outside_the_repository(file: Path) -> None:
    outside = OUTSIDE.search((CHECKOUT / file).read_text())
    assert outside is None, f"{file} cites {outside}"


def test_the_code_cites_the_format_pages() -> None:
    cited = {page for file in CODE for page, _ in CITED.findall((CHECKOUT / file).read_text())}
    assert {f"docs/formats/{name}.md" for name in FAMILIES} <= cited


def test_slugs_are_those_of_a_hosted_view(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two` (three)\n## A_b\n```\n# no\n```\n## A_b\n")
    assert slugs(page) == {"one-two-three", "a_b", "a_b-1"}

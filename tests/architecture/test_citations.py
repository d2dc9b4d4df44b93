"""Every citation in code, tests and documents resolves to a heading or a file of the repository."""

import ast
import re
from functools import cache
from pathlib import Path

from gristmill.families import FAMILIES
from tests.architecture.graph import listed, modules
from tests.paths import CHECKOUT

CITED = re.compile(r"\b(docs/[\w/.-]+\.md)(?:#([\w-]+))?")
LINKED = re.compile(r"\]\(([^)#\s]+\.(?:md|png|svg))?(?:#([\w-]+))?\)")
OUTSIDE = re.compile(
    r"\b(seed \d{3}\b|[Ss]pec \d|the spec\b|specs/|DESIGN\b|the design's|the SYNTH contract\b)"
)
"""Documents that the repository does not hold."""
AFTER = "After this page you"
WITHIN = re.compile(r"^[ \t]*(async def|def|class)\b.*Source:", re.M | re.S)
"""A citation after a function or class begins: few modules need to be parsed."""

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


@cache
def text_of(file: Path) -> str:
    return (CHECKOUT / file).read_text()


@cache
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


def _dead_citations(text: str) -> list[str]:
    cited = set(CITED.findall(text))
    return sorted(f"{p}#{slug}" for p, slug in cited if not _resolves(CHECKOUT / p, slug or None))


def _dead_links(page: Path, text: str) -> list[str]:
    return [
        f"{target}#{slug}"
        for target, slug in LINKED.findall(text)
        if not _resolves((page.parent / target) if target else page, slug or None)
    ]


def _outside(text: str) -> list[str]:
    """What a text cites that the repository does not hold."""
    return [found[0] for found in OUTSIDE.finditer(text)]


def test_citations_in_code_resolve() -> None:
    texts = {file: text_of(file) for file in CODE}
    dead = {file: found for file, text in texts.items() if (found := _dead_citations(text))}
    assert not dead, listed(dead)
    assert len(texts) > 700


def _cited_within(source: str) -> list[str]:
    """The functions and classes of a module that cite the source of their rule themselves."""
    if not WITHIN.search(source):
        return []
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and "Source:" in (ast.get_docstring(node) or "")
    ]


def test_a_module_cites_the_source_of_its_rules_in_its_head_alone() -> None:
    sources = {file: file.read_text() for file in modules(CHECKOUT).values()}
    found = {file: names for file, text in sources.items() if (names := _cited_within(text))}
    assert not found, listed(found)
    assert len(sources) > 400


def test_links_in_pages_resolve_and_a_guide_begins_with_what_the_reader_can_do() -> None:
    pages = [CHECKOUT / file for file in PAGES]
    dead = {page: found for page in pages if (found := _dead_links(page, page.read_text()))}
    assert not dead, listed(dead)
    assert len(pages) > 20
    guides = {file for file in PAGES if file.parent == Path("docs")}
    guides -= {Path("docs/README.md"), Path("docs/glossary.md")}
    others = [file for file in guides if not text_of(file).split("\n", 2)[2].startswith(AFTER)]
    assert not others, listed(sorted(others))


def test_neither_code_nor_pages_cite_documents_outside_the_repository() -> None:
    """A changelog may name them: it says what was there."""
    held = {*CODE, *PAGES} - {Path(__file__).relative_to(CHECKOUT), Path("CHANGELOG.md")}
    texts = {file: text_of(file) for file in held}
    outside = {file: found for file, text in texts.items() if (found := _outside(text))}
    assert not outside, listed(outside)


def test_a_dead_citation_a_dead_link_and_a_document_outside_the_repository_are_found() -> None:
    page = "docs/" + "publishing.md"
    assert _dead_citations(f"see {page}#provenance, {page}") == []
    assert _dead_citations(f"see {page}#nothing") == [f"{page}#nothing"]
    assert _dead_citations(f"{page.replace('.md', '_2.md')} says") == [
        page.replace(".md", "_2.md#")
    ]
    page = CHECKOUT / "docs/publishing.md"
    fine = (
        "[a](#provenance) [b](drops.md) [c](drops.md#states) [d](../README.md) [e](https://x.org)"
    )
    assert _dead_links(page, fine) == []
    dead = "[a](#nothing) [b](no_page.md) [c](drops.md#nothing) [d](pictures/no.png)"
    assert _dead_links(page, dead) == [
        "#nothing",
        "no_page.md#",
        "drops.md#nothing",
        "pictures/no.png#",
    ]
    assert _outside("the specification, a specimen") == []
    assert _outside("as the spec says; see specs/a.md and DESIGN") == [
        "the spec",
        "specs/",
        "DESIGN",
    ]
    doc = "    'A. Source: a page.'"
    assert _cited_within(f"def f():\n{doc}\nclass A:\n{doc}\n") == ["f", "A"]
    assert _cited_within("'A. Source: a page.'\ndef f():\n    'A.'\n") == []


def test_the_code_cites_the_format_pages() -> None:
    cited = {page for file in CODE for page, _ in CITED.findall(text_of(file))}
    assert {f"docs/formats/{name}.md" for name in FAMILIES} <= cited


def test_slugs_are_those_of_a_hosted_view(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two` (three)\n## A_b\n```\n# no\n```\n## A_b\n")
    assert slugs(page) == {"one-two-three", "a_b", "a_b-1"}


def test_a_version_of_the_changelog_has_at_most_forty_lines():
    _, *versions = text_of(Path("CHANGELOG.md")).split("\n## ")
    assert [each.splitlines()[0] for each in versions if each.strip().count("\n") >= 40] == []

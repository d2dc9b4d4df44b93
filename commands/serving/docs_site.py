"""What MkDocs asks while it makes the site of `docs/`: the navigation, and the pages of the API.

Our docstrings name an argument a line, `data: folder of the artifact`, and indent code. Griffe,
which reads docstrings for the site, wants a heading before arguments and a fence around code: the
extension of Griffe here writes both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gristmill.families import FAMILIES

Nav = list[dict[str, str | list[dict[str, str]]]]

INDEX: Final = "README.md"
API: Final = "api"
PACKAGES: Final = (
    *(f"gristmill.{family}" for family in FAMILIES),
    *(f"gristmill.{name}" for name in ("loading", "browse", "reading")),
    *(f"gristmill.{name}" for name in ("provenance", "mirror", "samples")),
)
"""What training code imports. Its public names are in `__all__`."""
_FOUND_LAST: Final = (f"{API}/", "formats/")
"""A search shows names and formats after guides."""
_SECTION: Final = re.compile(r"## (.+)")
_PAGE: Final = re.compile(r"- \[(.+?)\]\((\S+?\.md)\)")
_ARGUMENT: Final = re.compile(r"(\w+(?:, \w+)*): ")


def navigation(docs: Path) -> Nav:
    """Returns the navigation: the index, and the sections and pages that it lists, in its order.

    docs: the folder of the pages. A section begins with its page `first-hour/<section>.md`, if it
        has one that the index does not list.
    """
    text = (docs / INDEX).read_text("utf-8")
    nav: Nav = [{"Gristmill": INDEX}]
    pages: list[dict[str, str]] = []
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line):
            first = f"first-hour/{heading[1].lower()}.md"
            is_new = (docs / first).is_file() and f"({first})" not in text
            pages = [{"The first hour": first}] if is_new else []
            nav.append({heading[1]: pages})
        elif page := _PAGE.match(line):
            pages.append({page[1]: page[2]})
    return nav


def api_page(package: str) -> str:
    """Returns the page of a package: what it says of itself, and each of its public names."""
    module = import_module(package)
    about = (module.__doc__ or "").partition("\n")[0]
    names = getattr(module, "__all__", ["write_samples"])
    fields = "Every field of a config: [configuration](../configuration.md)."
    parts = [f"# {package}", about, fields, *(f"::: {package}.{name}" for name in names)]
    return "\n\n".join(parts) + "\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give MkDocs the navigation."""
    reference = [{package: f"{API}/{package}.md"} for package in PACKAGES]
    config.nav = [*navigation(Path(config.docs_dir)), {"Python API": reference}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the API, which are no files."""
    for package in PACKAGES:
        files.append(File.generated(config, f"{API}/{package}.md", content=api_page(package)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Tell the search which pages come last; the text stays."""
    if page.file.src_uri.startswith(_FOUND_LAST):
        page.meta["search"] = {"boost": 0.5}
    return markdown


def anchor(heading: str, separator: str = "-") -> str:
    """Returns the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


class Arguments(griffe.Extension):
    """Gives the docstrings of functions and classes the headings of Google's style."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Name the arguments of a function."""
        _name(func, {"Args": {each.name for each in func.parameters}})

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Name the arguments of a class, and its fields."""
        arguments = {each.name for each in cls.parameters}
        _name(cls, {"Args": arguments, "Attributes": set(cls.members)})

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show the type of a config's field without its rules, which docs/configuration.md has."""
        kind = attr.annotation
        if isinstance(kind, griffe.ExprSubscript) and isinstance(kind.slice, griffe.ExprTuple):
            if kind.canonical_path == "typing.Annotated":
                attr.annotation = kind.slice.elements[0]
        elif isinstance(kind, griffe.ExprName) and kind.canonical_path == "typing.ClassVar":
            # Griffe takes it for an argument.
            attr.labels.discard("instance-attribute")


def _name(named: griffe.Object, names: Mapping[str, Collection[str]]) -> None:
    if named.docstring is not None:
        named.docstring.value = with_headings(named.docstring.value, names)


def with_headings(text: str, names: Mapping[str, Collection[str]]) -> str:
    """Returns a docstring with headings before arguments, and fences around code.

    names: heading -> the names whose paragraphs it heads. A line that begins with another word
        stays text.
    """
    return "\n\n".join(_paragraph(each, names) for each in text.split("\n\n"))


def _paragraph(text: str, names: Mapping[str, Collection[str]]) -> str:
    if text.startswith("    "):
        return f"```python\n{dedent(text)}\n```"
    found = _ARGUMENT.match(text)
    first = found[1].split(", ")[0] if found else ""
    heading = next((each for each, known in names.items() if first in known), None)
    return text if heading is None else "\n".join([f"{heading}:", *_one_each(text.splitlines())])


def _one_each(lines: list[str]) -> Iterator[str]:
    """A line for each name, where `shards, rows: numbers` has two."""
    for line in lines:
        found = _ARGUMENT.match(line)
        if found is None:
            yield f"        {line.strip()}"
            continue
        for name in found[1].split(", "):
            yield f"    {name}: {line[found.end() :]}"

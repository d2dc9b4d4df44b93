"""What MkDocs asks while it makes the site of `docs/`: the navigation, and the pages of the API.

Our docstrings name an argument a line, `data: folder of the artifact`, and indent code. The site
shows docstrings as Markdown: the extension of Griffe here makes a list of these lines, and fences.
"""

from __future__ import annotations

import re
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
_BOOSTS: Final = {
    "faq": 2.0,
    f"{API}/": 0.0005,
    "formats/": 0.0005,
    **dict.fromkeys(("adding-", "architecture", "recipes"), 0.3),
}
"""What a page counts in a search, by the beginning of its name: names and formats after
guides, where a word of a title counts a thousand times one of a text."""
_SECTION: Final = re.compile(r"## (.+)")
_PAGE: Final = re.compile(r"- \[(.+?)\]\((\S+?\.md)\)")
_ARGUMENT: Final = re.compile(r"^(\w+(?:, \w+)*): ", re.MULTILINE)


def navigation(docs: Path) -> Nav:
    """Returns the navigation: the index, and the sections and pages that it lists, in its order."""
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
    """Tell the search which pages come first and last; the text stays."""
    for beginning, boost in _BOOSTS.items():
        if page.file.src_uri.startswith(beginning):
            page.meta["search"] = {"boost": boost}
    return markdown


def anchor(heading: str, separator: str = "-") -> str:
    """Returns the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


class Arguments(griffe.Extension):
    """Gives the docstrings of all objects lists of arguments, and fences around code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write the docstring of an object as Markdown."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show the type of a config's field without its rules, which docs/configuration.md has."""
        kind = attr.annotation
        if isinstance(kind, griffe.ExprSubscript) and isinstance(kind.slice, griffe.ExprTuple):
            if kind.canonical_path == "typing.Annotated":
                attr.annotation = kind.slice.elements[0]
        elif isinstance(kind, griffe.ExprName) and kind.canonical_path == "typing.ClassVar":
            # Griffe takes it for an argument.
            attr.labels.discard("instance-attribute")


def as_markdown(text: str) -> str:
    """Returns a docstring with a bullet for each argument, and fences around code."""
    return "\n\n".join(map(_paragraph, text.split("\n\n")))


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return f"```python\n{dedent(text)}\n```"
    return _ARGUMENT.sub(r"- **\1**: ", text) if _ARGUMENT.match(text) else text

"""The arguments in our docstrings, as the site's API pages show them.

Our docstrings name an argument a line, `data: folder of the artifact`, and indent code. Griffe,
which reads docstrings for the site, wants a heading before arguments and a fence around code: this
extension of Griffe writes both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from textwrap import dedent
from typing import Any, Final

import griffe

_ARGUMENT: Final = re.compile(r"(\w+(?:, \w+)*): ")


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

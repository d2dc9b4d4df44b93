"""The lists of docs/numbers.md. `python -m tests.assets.numbers_page` writes them again."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import get_origin, get_type_hints

from gristmill import families
from gristmill.contract import Summary
from gristmill.vocabularies.pinned import PlacedVocabulary
from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "numbers.md"
START, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
SENTENCES = re.compile(r"^((?:\w+, )*\w+): (.+(?:\n +.+)*)", re.MULTILINE)


def summaries() -> dict[str, list[type[Summary]]]:
    """The summaries of the builders of each asset."""
    found: dict[str, list[type[Summary]]] = {"tokenizers": [PlacedVocabulary]}
    for asset in (kind for each in families.catalogs() for kind in each.kinds):
        for entry in asset.code.entries if asset.code else ():
            module, _, name = entry.rpartition(".")
            given = get_type_hints(getattr(import_module(module), name)).get("return")
            if inspect.isclass(given) and issubclass(given, Summary):
                found.setdefault(asset.asset, []).append(given)
    return found


def numbers(summary: type[Summary]) -> list[str]:
    """The names of a summary that are numbers of an event."""
    hints = get_type_hints(summary)
    return [
        each.name
        for each in fields(summary)
        if each.name != "files"
        and (hints[each.name] in (int, float) or _is_mapping(hints, each.name))
    ]


def _is_mapping(hints: Mapping[str, object], name: str) -> bool:
    return get_origin(hints[name]) in (Mapping, dict)


def sentences_of(summary: type[Summary]) -> dict[str, str]:
    """What the docstrings of a summary and its bases say of each of its numbers."""
    said: dict[str, str] = {}
    for kind in reversed(summary.__mro__[:-1]):
        for names, sentence in SENTENCES.findall(
            inspect.cleandoc(kind.__dict__.get("__doc__") or "")
        ):
            said |= dict.fromkeys(names.split(", "), re.sub(r"\s+", " ", sentence))
    return said


def rendered() -> str:
    """The Markdown of all lists; assets with equal lists stand together."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for asset, kinds in summaries().items():
        said = {name: sentences_of(kind)[name] for kind in kinds for name in numbers(kind)}
        alike.setdefault(tuple(said.items()), []).append(asset)
    above: dict[tuple[str, str, str], str] = {}
    return "\n".join(line for said, them in alike.items() for line in _list(them, said, above))


def on_the_page() -> str:
    """What the page has between its two marks."""
    return PAGE.read_text().partition(START)[2].partition(END)[0]


def _list(
    assets: list[str], said: Iterable[tuple[str, str]], above: dict[tuple[str, str, str], str]
) -> Iterator[str]:
    """A heading, and an item a sentence with all numbers that it is true of.

    above: the asset that has a sentence already, by family, number and sentence.
    """
    yield f"### {', '.join(assets)}\n"
    own: dict[str, list[str]] = {}
    same: dict[str, list[str]] = {}
    for name, sentence in said:
        first = above.setdefault((assets[0].partition("/")[0], name, sentence), assets[0])
        place, key = (own, sentence) if first == assets[0] else (same, first)
        place.setdefault(key, []).append(f"`{name}`")
    for sentence, names in own.items():
        yield f"- {', '.join(names)}: {sentence}"
    for first, names in same.items():
        yield f"- {', '.join(names)}: as of {first}."
    yield ""


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + rendered() + "\n" + END + rest.partition(END)[2])

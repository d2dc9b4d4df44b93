"""docs/numbers.md has a sentence on each number of an event, and no other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from typing import get_origin, get_type_hints

from assets.events import COLUMNS, RESERVED, ROWS
from gristmill import families
from gristmill.contract import Summary
from tests.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "numbers.md").read_text()
LISTS = re.compile(r"^### (.+)\n((?:\n|- .+\n)+)", re.MULTILINE)
NAMED = re.compile(r"^- ((?:`\w+`, )*`\w+`): \S.+\.$", re.MULTILINE)


def summaries() -> Iterator[tuple[str, type[Summary]]]:
    """The summaries of the builders of each asset."""
    for asset in (kind for each in families.catalogs() for kind in each.kinds):
        for entry in asset.code.entries if asset.code else ():
            module, _, name = entry.rpartition(".")
            given = get_type_hints(getattr(import_module(module), name)).get("return")
            if inspect.isclass(given) and issubclass(given, Summary):
                yield asset.asset, given


def numbers(summary: type[Summary]) -> set[str]:
    """The names of a summary that are numbers of an event."""
    hints = {name: get_origin(hint) or hint for name, hint in get_type_hints(summary).items()}
    named = {each.name for each in fields(summary)} - {"files"}
    return {name for name in named if hints[name] in (int, float, Mapping, dict)}


def test_every_number_of_every_builder_has_a_sentence() -> None:
    made: dict[str, set[str]] = {}
    for asset, summary in summaries():
        made.setdefault(asset, set()).update(numbers(summary))
    said: dict[str, set[str]] = {}
    for assets, items in LISTS.findall(PAGE):
        names = re.findall(r"`(\w+)`", " ".join(NAMED.findall(items)))
        assert len(names) == len(set(names)), assets
        said |= {key: set(names) for key in assets.split(", ")}
    assert said == made


def test_every_row_that_all_events_may_have_has_a_sentence() -> None:
    rows = (*RESERVED, ROWS, COLUMNS, "dagster/uri", "picture")
    assert [name for name in rows if f"`{name}`" not in PAGE] == []

"""Every promise of docs/publishing-details.md names tests, and the tests are there."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.paths import CHECKOUT

_HEADING = "## What is promised, to whom, and how each promise is tested"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_WHOM = {"writer", "downstream asset", "reader", "operator", "person who audits"}


def _rows() -> list[list[str]]:
    text = (CHECKOUT / "docs/publishing-details.md").read_text()
    section = text.partition(f"{_HEADING}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def _tests_in(file: str) -> set[str]:
    tree = ast.parse((CHECKOUT / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


ROWS = _rows()


def _faults(row: list[str]) -> list[str]:
    """What is wrong with a row of the table."""
    whom, promise, named = row
    tests = _TEST.findall(named)
    found = [] if whom.partition(" (")[0] in _WHOM else [f"{whom}: no party"]
    if not promise.endswith("."):
        found.append(f"{promise}: no sentence")
    if not tests or _TEST.sub("", named).strip(", "):
        found.append(f"{promise}: not only tests: {named}")
    return found + [f"{file} has no {name}" for file, name in tests if name not in _tests_in(file)]


def test_promises_name_tests_that_are_there() -> None:
    assert len(ROWS) > 10
    faults = [fault for row in ROWS for fault in _faults(row)]
    assert not faults, "\n".join(faults)


def test_a_promise_without_its_tests_is_found() -> None:
    file = "tests/architecture/test_promises.py"
    here = f"`{file}::test_every_party_is_promised_something`"
    assert _faults(["reader (a)", "It holds.", here]) == []
    assert _faults(["nobody", "It holds.", here]) == ["nobody: no party"]
    assert _faults(["reader", "It holds", here]) == ["It holds: no sentence"]
    assert _faults(["reader", "It.", "later"]) == ["It.: not only tests: later"]
    assert _faults(["reader", "It.", f"{here}, too"]) == [f"It.: not only tests: {here}, too"]
    assert _faults(["reader", "It.", f"`{file}::test_x`"]) == [f"{file} has no test_x"]


def test_every_party_is_promised_something() -> None:
    assert {row[0].partition(" (")[0] for row in ROWS} == _WHOM

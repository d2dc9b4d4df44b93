"""Every promise of docs/publishing.md names tests, and the tests are there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.paths import CHECKOUT

_HEADING = "## What is promised, to whom, and how each promise is tested"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_WHOM = {"writer", "downstream asset", "reader", "operator", "person who audits"}


def _rows() -> list[list[str]]:
    text = (CHECKOUT / "docs/publishing.md").read_text()
    section = text.partition(f"{_HEADING}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def _tests_in(file: str) -> set[str]:
    tree = ast.parse((CHECKOUT / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


ROWS = _rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:40])
def test_a_promise_names_tests_that_are_there(row: list[str]) -> None:
    whom, promise, named = row
    assert whom.partition(" (")[0] in _WHOM
    assert promise.endswith(".")
    tests = _TEST.findall(named)
    assert tests and _TEST.sub("", named).strip(", ") == "", named
    for file, name in tests:
        assert name in _tests_in(file), f"{file} has no {name}"


def test_every_party_is_promised_something() -> None:
    assert {row[0].partition(" (")[0] for row in ROWS} == _WHOM

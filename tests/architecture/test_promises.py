"""Every promise of docs/publishing-details.md names tests, and the tests are there."""

import ast
import re
from functools import cache

from tests.paths import CHECKOUT

_HEADING = "## What is promised, to whom, and how each promise is tested"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _items() -> list[str]:
    text = (CHECKOUT / "docs/publishing-details.md").read_text()
    section = text.partition(f"{_HEADING}\n")[2].partition("\n## ")[0]
    return [line[2:] for line in section.splitlines() if line.startswith("- ")]


@cache
def _tests_in(file: str) -> set[str]:
    tree = ast.parse((CHECKOUT / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _faults(item: str) -> list[str]:
    """What is wrong with a promise: a sentence, and the tests behind it."""
    promise, _, named = item.partition(" `tests/")
    tests = _TEST.findall(f"`tests/{named}")
    found = [] if promise.endswith(".") else [f"{promise}: no sentence"]
    if not tests or _TEST.sub("", f"`tests/{named}").strip():
        found.append(f"{promise}: not only tests: {named}")
    return found + [f"{file} has no {name}" for file, name in tests if name not in _tests_in(file)]


def test_promises_name_tests_that_are_there() -> None:
    assert len(_items()) > 20
    faults = [fault for item in _items() for fault in _faults(item)]
    assert not faults, "\n".join(faults)


def test_a_promise_without_its_tests_is_found() -> None:
    file = "tests/architecture/test_promises.py"
    here = f"`{file}::test_promises_name_tests_that_are_there`"
    assert _faults(f"It holds. {here} {here}") == []
    assert _faults(f"It holds {here}") == ["It holds: no sentence"]
    assert _faults("It.") == ["It.: not only tests: "]
    assert _faults(f"It. {here}, too") == [f"It.: not only tests: {here[len('`tests/') :]}, too"]
    assert _faults(f"It. `{file}::test_x`") == [f"{file} has no test_x"]

"""Modules, functions and folders that a person can read at one go, and the sum of them."""

import ast
import subprocess
from pathlib import Path

import pytest

from tests.architecture.graph import listed, modules
from tests.paths import CHECKOUT

LINES, FUNCTION_LINES, MODULES = 700, 60, 16
PRODUCT, TESTS = 113_286, 108_985
"""Lines of all Python without `tests/` and `bench/`, and of `tests/`. They only fall: a feature
brings its own cut. Only an issue's new capability raises one, in the commit that explains it."""
COMPILED = ("gristmill/chess/kernels/", "gristmill/macroxue/raw/fast_scanner.py")
"""What numba compiles: one function there is one loop over bytes."""


def _measured() -> list[Path]:
    sources = [*modules(CHECKOUT).values()]
    for folder in ("bench", "examples"):
        sources += sorted((CHECKOUT / folder).rglob("*.py"))
    files = [file.relative_to(CHECKOUT) for file in sources]
    return [file for file in files if not file.as_posix().startswith(COMPILED)]


def _too_long(source: str) -> list[str]:
    """What of a module is longer than a person reads at one go."""
    lines = source.count("\n")
    found = [f"{lines} lines"] if lines > LINES else []
    waiting: list[ast.AST] = [ast.parse(source)]
    for node in waiting:  # no expression holds a function
        waiting += (part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{node.name} in line {node.lineno}: {length} lines")
    return found


@pytest.mark.slow
def test_modules_and_their_functions_are_short() -> None:
    sources = {file: (CHECKOUT / file).read_text() for file in _measured()}
    long = {file: found for file, source in sources.items() if (found := _too_long(source))}
    assert not long, listed(long)
    assert len(sources) > 400


def test_a_long_module_and_long_functions_are_found() -> None:
    body = "    pass\n"
    fits = "def f():\n" + body * (FUNCTION_LINES - 1)
    assert _too_long(fits + "\n" * (LINES - FUNCTION_LINES)) == []
    assert _too_long("\n" * (LINES + 1)) == ["701 lines"]
    assert _too_long(fits + body) == ["f in line 1: 61 lines"]
    inner = "class A:\n    async def g():\n" + "        pass\n" * FUNCTION_LINES
    assert _too_long(inner) == ["g in line 2: 61 lines"]


def test_no_folder_is_crowded() -> None:
    folders = {file.parent for file in modules(CHECKOUT).values()}
    assert len(folders) > 20
    for folder in folders:
        held = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(held) <= MODULES, f"{folder.relative_to(CHECKOUT)}: {len(held)} modules"


def _sums() -> tuple[int, int]:
    """The lines of product and tests, by what git knows."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    lines = {
        name: (CHECKOUT / name).read_bytes().count(b"\n")
        for name in done.stdout.split("\0")
        if name and (CHECKOUT / name).is_file()
    }
    tests = sum(lines[name] for name in lines if name.startswith("tests/"))
    return sum(lines[name] for name in lines if not name.startswith(("tests/", "bench/"))), tests


def test_product_and_tests_keep_their_budget() -> None:
    product, tests = _sums()
    assert product > 50_000 and tests > 50_000, "not all files are counted"
    cure = "cut as much as the change adds: CONTRIBUTING.md#what-a-change-owes"
    assert product <= PRODUCT, f"the product has {product:,} lines, {PRODUCT:,} at most: {cure}"
    assert tests <= TESTS, f"the tests have {tests:,} lines, {TESTS:,} at most: {cure}"

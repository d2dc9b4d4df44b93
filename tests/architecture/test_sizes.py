"""Modules, functions and folders that a person can read at one go."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.graph import modules
from tests.paths import CHECKOUT

LINES, FUNCTION_LINES, MODULES = 450, 60, 16
COMPILED = ("gristmill/chess/kernels/", "gristmill/macroxue/raw/fast_scanner.py")
"""What numba compiles: one function there is one loop over bytes."""


def _measured() -> list[Path]:
    sources = [*modules(CHECKOUT).values()]
    for folder in ("bench", "examples"):
        sources += sorted((CHECKOUT / folder).rglob("*.py"))
    files = [file.relative_to(CHECKOUT) for file in sources]
    return [file for file in files if not file.as_posix().startswith(COMPILED)]


@pytest.mark.parametrize("file", _measured(), ids=str)
def test_a_module_and_its_functions_are_short(file: Path) -> None:
    source = (CHECKOUT / file).read_text()
    assert source.count("\n") <= LINES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= FUNCTION_LINES, f"{file}:{node.lineno} {node.name}: {length} lines"


def test_no_folder_is_crowded() -> None:
    folders = {file.parent for file in modules(CHECKOUT).values()}
    assert len(folders) > 20
    for folder in folders:
        held = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(held) <= MODULES, f"{folder.relative_to(CHECKOUT)}: {len(held)} modules"

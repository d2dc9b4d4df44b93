"""Imports point down: operate, definitions, sensors, assets, resources, gristmill."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

LAYERS = ["gristmill", "resources", "assets", "sensors", "definitions", "operate"]
HEAVY = ["numpy", "torch", "polars", "numba", "pyarrow", "dagster", "megatron", "tiktoken"]


def _modules(layer: str) -> list[Path]:
    single = CHECKOUT / f"{layer}.py"
    return [single] if single.exists() else sorted((CHECKOUT / layer).rglob("*.py"))


def _imports(source: str) -> set[str]:
    """Top-level names of all that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their package"
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("layer", LAYERS)
def test_no_module_imports_from_above(layer: str) -> None:
    above = set(LAYERS[LAYERS.index(layer) + 1 :]) | {"tests", "bench"}
    for module in _modules(layer):
        found = _imports(module.read_text()) & above
        assert not found, f"{module.relative_to(CHECKOUT)} imports {sorted(found)}"


def test_the_library_does_not_know_dagster() -> None:
    modules = _modules("gristmill")
    assert len(modules) > 10
    for module in modules:
        found = {name for name in _imports(module.read_text()) if name.startswith("dagster")}
        assert not found, f"{module.relative_to(CHECKOUT)} imports {sorted(found)}"


def test_the_check_sees_every_form_of_import() -> None:
    source = "import a.b as c\ndef f():\n    from d.e import g\nif 1:\n    import h, i\n"
    assert _imports(source) == {"a", "d", "h", "i"}


@pytest.mark.parametrize(
    "module",
    ["contract", "artifact", "provenance", "verification", "pool", "parts", "progress", "laws"],
)
def test_the_floor_is_light(module: str) -> None:
    code = f"import sys, gristmill.{module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert f"gristmill.{module}" in done.stdout.split()
    assert not loaded & set(HEAVY)

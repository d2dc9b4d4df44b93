"""The import graph of a checkout, from its syntax trees: who imports whom, anywhere in a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

TOPS = ("gristmill", "resources", "assets", "sensors", "commands")
SINGLES = ("definitions", "operate")


def modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file of every module of the checkout, tests and benches apart."""
    files = [file for top in TOPS for file in sorted((root / top).rglob("*.py"))]
    files += [root / f"{name}.py" for name in SINGLES if (root / f"{name}.py").exists()]
    found = {}
    for file in files:
        parts = list(file.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = file
    return found


def imported(source: str) -> Iterator[tuple[str, ...]]:
    """Dotted names that a module imports; for `from a import b` the candidates a.b and a.

    Imports in functions and under TYPE_CHECKING count. Raises ValueError for a relative import.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno}: a relative import")
            yield from ((f"{node.module}.{alias.name}", str(node.module)) for alias in node.names)


@cache
def imports(root: Path) -> dict[str, frozenset[tuple[str, ...]]]:
    """Module -> what it imports, as `imported` says it; each file is parsed once in a process."""
    return {name: frozenset(imported(file.read_text())) for name, file in modules(root).items()}


def graph(root: Path) -> dict[str, set[str]]:
    """Module -> the modules of the checkout that it imports."""
    known = imports(root)
    arrows: dict[str, set[str]] = {}
    for name, forms in known.items():
        targets = (
            next((candidate for candidate in candidates if candidate in known), None)
            for candidates in forms
        )
        arrows[name] = {target for target in targets if target not in (None, name)}  # type: ignore[misc]
    return arrows


def circles(arrows: Mapping[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which imports all others of its set, directly or not."""
    reached = {name: _reachable(arrows, name) for name in arrows}
    found: list[set[str]] = []
    for name in arrows:
        circle = {other for other in reached[name] if name in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def _reachable(arrows: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in arrows.get(waiting.pop(), ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def listed(found: Mapping[Path, list[str]]) -> str:
    """All that breaks a rule, a file a line: pytest itself would cut the list short."""
    return "".join(f"\n{file}: {'; '.join(faults)}" for file, faults in sorted(found.items()))

"""The digest of the code that decides an asset's output, for fingerprints.

A code version is a number that a person raises. The digest is derived: it changes
with the syntax tree of the builder's modules, and with nothing else. See also
`gristmill.families`: which modules belong to which asset. Source:
`docs/publishing.md#code-digest`.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.run import kept_facts

_STATEMENTS: Final = frozenset({"body", "orelse", "finalbody"})
"""Fields of a syntax tree that hold statements, of which some may be only a text."""
_LEFT_OUT: Final = frozenset({"laws", "show"})
"""Folders of a family whose modules write nothing of what is published."""


@dataclass(frozen=True)
class Code:
    """The code of one asset's builder.

    modules: names of the modules that write the artifact; the modules of the same
        family that they import belong to the code, too.
    libraries: distributions whose version can change the output.
    compatible_with: digests of earlier code that gives the same output. A record
        with one of them stays current. `tests/goldens` holds each of them to that.
    undigested: the digest of the code that wrote records without a digest, which
        is the code of 0.2.0. Default None: there are no such records.
    """

    modules: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    compatible_with: tuple[str, ...] = ()
    undigested: str | None = None

    @property
    def digest(self) -> str:
        """The hex sha256 of the modules' syntax trees, without docstrings and comments."""
        return _digest(self.modules)

    @property
    def equal_digests(self) -> tuple[str, ...]:
        """The digests of all code that gives the same output, this code's first."""
        return (self.digest, *self.compatible_with)


def modules_of(entries: tuple[str, ...]) -> list[str]:
    """The modules of a family that `entries` import, themselves included, sorted.

    A module belongs to the code if it lies in a folder of its family that is not
    `laws` or `show`. Imports within functions count; those for type checkers alone
    do not.
    """
    todo, reached = list(entries), set(entries)
    while todo:
        name = todo.pop()
        for imported in _parsed(name).imports:
            if imported not in reached and _belongs(imported, name):
                reached.add(imported)
                todo.append(imported)
    return sorted(reached)


@cache
def _digest(entries: tuple[str, ...]) -> str:
    lines = [f"{name} {_parsed(name).digest}\n" for name in modules_of(entries)]
    _known().keep()
    return hashlib.sha256("".join(lines).encode()).hexdigest()


class _Parsed(NamedTuple):
    """What is kept of a module; its syntax tree would slow down all that comes after."""

    digest: str
    imports: tuple[str, ...]


class _Known:
    """What is kept of sources, by their sha256: parsing takes a small run a tenth of its time."""

    def __init__(self) -> None:
        # Another rule of this module finds something else in the same source.
        rule = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        self._file = f"code-digests-{rule[:16]}"
        self._kept = kept_facts.read(self._file)
        self._used: dict[str, tuple[str, ...]] = {}
        self._has_more = False

    def parsed(self, source: bytes) -> _Parsed:
        """Returns what is kept of a source, or what it says now."""
        key = hashlib.sha256(source).hexdigest()
        if (facts := self._kept.get(key)) is None:
            tree = ast.parse(source)
            facts = self._kept[key] = (tree_digest(tree), *_imports(tree))
            self._has_more = True
        self._used[key] = facts
        return _Parsed(facts[0], facts[1:])

    def keep(self) -> None:
        """Keep what was parsed for the processes after this one."""
        if self._has_more:
            kept_facts.keep(self._file, self._used)
            self._has_more = False


@cache
def _known() -> _Known:
    return _Known()


@cache
def _parsed(name: str) -> _Parsed:
    return _known().parsed(_source(name).read_bytes())


def tree_digest(tree: ast.AST) -> str:
    """The hex sha256 of a syntax tree, without docstrings, comments and positions.

    The digest does not depend on the version of Python: a field that is an empty list
    or None is left out, since newer versions have more of them.
    """
    pieces: list[str] = []
    _write(tree, pieces.append)
    return hashlib.sha256("".join(pieces).encode(errors="surrogatepass")).hexdigest()


def _write(node: ast.AST, write: Callable[[str], None]) -> None:
    kind = type(node)
    if kind is ast.Constant:
        value: Any = node.value  # type: ignore[attr-defined]
        write(f"({type(value).__name__} {value!r})")
        return
    write(f"({kind.__name__}")
    for field in kind._fields:
        value = getattr(node, field, None)
        if value is None:
            continue
        # In a list None has a place: a parameter without a default, `**` in a dictionary.
        items = value if type(value) is list else (value,)
        if field in _STATEMENTS:
            items = [item for item in items if not _is_docstring(item)]
        if items:
            write(f" {field}={len(items)}")
        for item in items:
            if isinstance(item, ast.AST):
                _write(item, write)
            else:
                write(f" {item!r}")
    write(")")


def _is_docstring(item: object) -> bool:
    """Whether `item` is a statement that is only a text: it does nothing."""
    if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):
        return False
    return isinstance(item.value.value, str)


@cache
def _source(name: str) -> Path:
    """The file of a module. Raises ModuleNotFoundError where there is none."""
    top, *inside = name.split(".")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(name, name=name)
    path = Path(spec.submodule_search_locations[0], *inside)
    for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
        if file.is_file():
            return file
    raise ModuleNotFoundError(f"{name}: {path} is no module", name=name)


def _imports(tree: ast.Module) -> tuple[str, ...]:
    """Modules that a module imports by absolute names, whichever of them exist."""
    todo: list[ast.AST] = [tree]
    found: dict[str, None] = {}
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            todo += node.orelse
        elif isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found[node.module] = None
            found |= dict.fromkeys(f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.expr):  # an expression holds no import
            todo += ast.iter_child_nodes(node)
    return tuple(found)


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _belongs(imported: str, importer: str) -> bool:
    """Whether a module that `importer` imports is code of the same family's artifacts."""
    parts = imported.split(".")
    if len(parts) < 4 or parts[:2] != importer.split(".")[:2] or parts[2] in _LEFT_OUT:
        return False
    try:
        _source(imported)
    except ModuleNotFoundError:
        return False  # a name in a module
    return True

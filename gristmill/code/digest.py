"""The digest of the code that decides an asset's output, for fingerprints."""

from __future__ import annotations

import ast
import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.contract import GristmillError
from gristmill.hashing import sha256_sources
from gristmill.run import kernels

_STATEMENTS: Final = frozenset({"body", "orelse", "finalbody"})
"""Fields of a syntax tree that hold statements, of which some may be only a text."""
_IMPORTS: Final = (ast.Import, ast.ImportFrom)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONFIG: Final = "CODE_VERSION"
"""A class with this constant is a config: the values of its fields are in the fingerprint."""
_ERROR: Final = "GristmillError"
"""The class of the errors that end a build: what they say is in no artifact."""
_READERS: Final = frozenset({"raw", "untrusted"})
"""Packages whose errors may be of one row: the rule is then published with the refused row."""


class Place(NamedTuple):
    """Where a definition is.

    name: of the definition in it; empty for statements that define nothing.
    """

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}".rstrip(".")


@dataclass
class Module:
    """The top-level statements of a module, by what they define.

    statements: of each name, and of the empty name those that define nothing.
    """

    name: str
    file: Path
    statements: dict[str, list[ast.stmt]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)


def folder_of(package: str) -> Path:
    """Returns the folder of a package. Raises ModuleNotFoundError where there is none."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(package, name=package)
    return Path(spec.submodule_search_locations[0])


class Sources:
    """The modules of a package, as their sources state them.

    Raises ModuleNotFoundError where there is no such package.
    """

    def __init__(self, package: str) -> None:
        self.package = package
        self._folder = folder_of(package)
        self._modules: dict[str, Module] = {}
        self._found: dict[Place, tuple[str, tuple[Place, ...]]] = {}

    @cached_property
    def files(self) -> dict[str, Path]:
        """The file of each module, by its dotted name."""
        found = {}
        for file in self._folder.rglob("*.py"):
            parts = [self.package, *file.relative_to(self._folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
        return found

    def module(self, name: str) -> Module:
        """Returns what a module states. Raises KeyError where there is none."""
        if name not in self._modules:
            self._modules[name] = _stated(name, self.files[name])
        return self._modules[name]

    def place(self, dotted: str) -> tuple[Place, int] | None:
        """Where a dotted path is defined, and how many of its last names are attributes of it.

        dotted: as `gristmill.untrusted.files.open_file.__name__`. None where it is not of the
            package, or nothing defines it. A module is the place with an empty name.
        """
        parts = dotted.split(".")
        for cut in range(len(parts), 0, -1):
            name = ".".join(parts[:cut])
            if name in self.files:
                break
        else:
            return None
        if cut == len(parts):
            return Place(name, ""), 0
        module, first, rest = self.module(name), parts[cut], len(parts) - cut - 1
        if first in module.statements:
            return Place(name, first), rest
        if target := module.aliases.get(first):
            tail = parts[cut + 1 :]
            return self.place(".".join([target, *tail]))
        return None

    def defined(self, dotted: str) -> Place:
        """Returns where a dotted name is defined.

        Raises GristmillError where nothing defines it.
        """
        found = self.place(dotted)
        if found is None or found[1] or not found[0].name:
            raise GristmillError(f"{dotted}: no function, class or constant has this name")
        return found[0]

    def line(self, place: Place) -> str:
        """Returns a line with the hex sha256 of a definition, and those of what it names."""
        digest, references = self._of(place)
        return " ".join([digest, *(self._of(each)[0] for each in references)]) + "\n"

    def is_error(self, place: Place) -> bool:
        """Whether a definition is `GristmillError`, or a class below it."""
        module = self.module(place.module)
        for statement in module.statements.get(place.name, ()):
            for base in statement.bases if isinstance(statement, ast.ClassDef) else ():
                first, _, rest = ast.unparse(base).partition(".")
                own = f"{module.name}.{first}" if first in module.statements else None
                found = self.place(f"{own or module.aliases.get(first, first)}.{rest}".rstrip("."))
                if found and not found[1] and self.is_error(found[0]):
                    return True
        return place.name == _ERROR

    def reached(self, entries: Collection[Place], left_out: Callable[[Place], bool]) -> set[Place]:
        """Returns all definitions that entries reach, themselves included."""
        todo, seen = list(entries), set(entries)
        while todo:
            for found in self._next(todo.pop()):
                if found not in seen and not left_out(found):
                    seen.add(found)
                    todo.append(found)
        return seen

    def _next(self, place: Place) -> Iterator[Place]:
        yield from self._of(place)[1]
        if not place.name:
            yield from (Place(place.module, name) for name in self.module(place.module).statements)

    def _of(self, place: Place) -> tuple[str, tuple[Place, ...]]:
        if place not in self._found:
            module = self.module(place.module)
            writer = _Writer(self, module)
            for statement in module.statements.get(place.name, ()):
                writer.write(statement)
            digest = hashlib.sha256("".join(writer.pieces).encode(errors="surrogatepass"))
            self._found[place] = digest.hexdigest(), tuple(writer.references)
        return self._found[place]


def _stated(name: str, file: Path) -> Module:
    """What a module states at its top level."""
    module = Module(name, file)
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    others = []
    for statement in _executed(ast.parse(file.read_bytes()).body):
        if isinstance(statement, _IMPORTS):
            module.aliases.update(_aliases(statement, package))
        elif defined := _defined(statement):
            for each in defined:
                module.statements.setdefault(each, []).append(statement)
        else:
            others.append(statement)
    # What fills a table belongs to the table: a loop, an assignment to a part of it.
    for statement in others:
        for each in {*_names(statement)} & {*module.statements} or {""}:
            module.statements.setdefault(each, []).append(statement)
    return module


def _executed(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module that do something when they run; type checkers do not run."""
    for statement in body:
        if isinstance(statement, ast.If) and _is_type_checking(statement.test):
            yield from _executed(statement.orelse)
        elif isinstance(statement, ast.With | ast.Try) and any(
            isinstance(inner, _IMPORTS) for inner in statement.body
        ):
            others = statement.handlers if isinstance(statement, ast.Try) else []
            for body in (statement.body, *(other.body for other in others)):
                yield from _executed(body)
        elif not _is_docstring(statement):
            yield statement


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _aliases(statement: ast.stmt, package: str) -> Iterator[tuple[str, str]]:
    """The names that an import binds, with what they stand for."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(statement, ast.ImportFrom):
        above = package.split(".")[: package.count(".") + 2 - statement.level]
        parts = [*(above if statement.level else ()), *filter(None, [statement.module])]
        for alias in statement.names:
            yield alias.asname or alias.name, ".".join([*parts, alias.name])


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a definition or an assignment binds; none for other statements."""
    if isinstance(statement, _SCOPES):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return []
    return [
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def _names(statement: ast.stmt) -> Iterator[str]:
    return (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))


def _is_docstring(item: object) -> bool:
    """Whether `item` is a statement that is only a text: it does nothing."""
    if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):
        return False
    return isinstance(item.value.value, str)


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a text as the source has it, with or without values in it."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


class _Writer:
    """Writes the tree of a definition, with what it refers to by the names of definitions.

    A field that is an empty list or None is left out: newer versions of Python have more of them.
    """

    def __init__(self, sources: Sources, module: Module) -> None:
        self._sources = sources
        self._module = module
        self._package = (
            module.name if module.file.name == "__init__.py" else module.name.rpartition(".")[0]
        )
        self._local: dict[str, str] = {}
        self.pieces: list[str] = []
        self.references: list[Place] = []

    def write(self, statement: ast.stmt) -> None:
        """Write a top-level statement."""
        self._local = {
            name: path
            for node in ast.walk(statement)
            if isinstance(node, _IMPORTS)
            for name, path in _aliases(node, self._package)
        }
        self._node(statement)

    def _node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant):
            self.pieces.append(f"({type(node.value).__name__} {node.value!r})")
            return
        if isinstance(node, ast.Name | ast.Attribute) and self._reference(node):
            return
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node = ast.Raise(self._without_words(node.exc), node.cause)
        self.pieces.append(f"({type(node).__name__}")
        for name in node._fields:
            value: Any = getattr(node, name, None)
            if value is None:
                continue
            # In a list None has a place: a parameter without a default, `**` in a dictionary.
            items = value if type(value) is list else [value]
            if name in _STATEMENTS:
                items = [item for item in items if not self._is_left_out(node, item)]
            if items:
                self.pieces.append(f" {name}={len(items)}")
            for item in items:
                if isinstance(item, ast.AST):
                    self._node(item)
                else:
                    self.pieces.append(f" {item!r}")
        self.pieces.append(")")

    @staticmethod
    def _is_left_out(owner: ast.AST, item: object) -> bool:
        """Whether a statement decides nothing: texts, imports, and the fields of a config."""
        if isinstance(item, _IMPORTS) or _is_docstring(item):
            return True
        return (
            isinstance(item, ast.AnnAssign)
            and isinstance(owner, ast.ClassDef)
            and any(_CONFIG in _defined(other) for other in owner.body)
        )

    def _without_words(self, error: ast.Call) -> ast.Call:
        """An error that is raised, without its texts where they only tell a person why."""
        found, _ = self._resolved(error.func)
        if _READERS & {*self._module.name.split(".")}:
            return error
        if found is None or found[1] or not self._sources.is_error(found[0]):
            return error
        named = [each for each in error.keywords if not _is_text(each.value)]
        return ast.Call(error.func, [each for each in error.args if not _is_text(each)], named)

    def _resolved(self, node: ast.expr) -> tuple[tuple[Place, int] | None, list[str]]:
        """Where a name is defined in the package, as `Sources.place`; and its attributes."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None, attributes
        root = self._local.get(node.id) or (
            f"{self._module.name}.{node.id}"
            if node.id in self._module.statements
            else self._module.aliases.get(node.id)
        )
        return self._sources.place(".".join([root, *attributes])) if root else None, attributes

    def _reference(self, node: ast.Name | ast.Attribute) -> bool:
        """Write a name that is defined in the package, if it is one."""
        found, attributes = self._resolved(node)
        if found is None:
            return False
        place, rest = found
        self.references.append(place)
        shown = [place.name, *attributes[len(attributes) - rest :]] if rest else [place.name]
        self.pieces.append(f"(Reference {'.'.join(shown)} {type(node.ctx).__name__})")
        return True


MOST: Final = 4_000
"""Sources of a file; with more, those that this process did not use are left out."""

Facts = Mapping[str, tuple[str, ...]]
"""By the sha256 of a source, words without spaces."""


LEFT_OUT: Final = {
    "gristmill.code.digest": "finds the digest itself",
    "gristmill.data_root": "finds the drops and settings of a build",
    "gristmill.families": "finds the drops and settings of a build",
    "gristmill.hashing": "sha256 of files, which has one right value",
    "gristmill.layout.root_of": "finds the data root, whose place decides no byte",
    "gristmill.lazy_exports": "imports names when they are used",
    "gristmill.provenance": "describes what was built",
    "gristmill.publish": "puts into place what was built",
    "gristmill.run": "shares the work among processes, keeps its parts, and shows its progress",
    "gristmill.settings": "checks settings, whose values are in the fingerprint",
    "gristmill.takedowns.left_out": "finds the rows that tombstones name, which are inputs",
    "gristmill.untrusted.child": "runs a function in a process with limits",
    "gristmill.untrusted.child_main": "runs a function in a process with limits",
    "gristmill.untrusted.toml": "reads settings and recipes, whose values are in the fingerprint",
}
"""Modules, packages and definitions that decide no byte of an artifact, and why."""


@dataclass(frozen=True)
class Code:
    """The code of one asset's builder.

    entries: dotted names of the functions that write the artifact; all that they reach belongs
        to the code, too.
    libraries: distributions whose version can change the output.
    compatible_with: digests of earlier code that gives the same output. A record
        with one of them stays current. `tests/goldens` holds each of them to that.
    undigested: the digest of the code that wrote records without a digest, which
        is the code of 0.2.0. Default None: there are no such records.
    """

    entries: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    compatible_with: tuple[str, ...] = ()
    undigested: str | None = None

    @property
    def digest(self) -> str:
        """The hex sha256 of the definitions that the entries reach.

        Raises ModuleNotFoundError where an entry is in no package, GristmillError where nothing
        has its name.
        """
        return _digest(self.entries)

    @property
    def equal_digests(self) -> tuple[str, ...]:
        """The digests of all code that gives the same output, this code's first."""
        return (self.digest, *self.compatible_with)

    def is_equal(self, digest: str | None) -> bool:
        """Whether code with a digest gives the same output; None is the code of 0.2.0."""
        return (digest or self.undigested) in (None, *self.equal_digests)


def definitions_of(entries: Collection[str]) -> set[Place]:
    """Returns the definitions that functions reach, themselves included."""
    if not entries:
        return set()
    sources = _sources(next(iter(entries)).partition(".")[0])
    return sources.reached([sources.defined(entry) for entry in entries], is_left_out)


def is_left_out(place: Place) -> bool:
    """Whether a definition decides nothing: by itself, or by the module that it is in.

    place: of the definition. The module `builds` of a family gives a builder what the fingerprint
        has: inputs and config.
    """
    is_builds = place.module.endswith(".builds")
    return is_builds or any(
        f"{place.module}.{place.name}.".startswith(f"{name}.") for name in LEFT_OUT
    )


@cache
def _digest(entries: tuple[str, ...]) -> str:
    if not entries:
        return hashlib.sha256().hexdigest()
    package = entries[0].partition(".")[0]
    known, key = _kept(), hashlib.sha256(f"{_sum(package)} {entries}".encode()).hexdigest()
    if key not in known:
        sources = _sources(package)
        lines = sorted(sources.line(place) for place in definitions_of(entries))
        known[key] = (hashlib.sha256("".join(lines).encode()).hexdigest(),)
        # Sources that somebody edits while they are read have no digest that may be kept.
        if sha256_sources(folder_of(package)) == _sum(package):
            keep_facts(_file(), {key: known[key]})
    return known[key][0]


@cache
def _sources(package: str) -> Sources:
    return Sources(package)


@cache
def _sum(package: str) -> str:
    """What changes with any source of a package, so that what is kept is of these sources."""
    return sha256_sources(folder_of(package))


@cache
def _kept() -> dict[str, tuple[str, ...]]:
    """Digests that earlier processes found, by sources and entries."""
    return read_facts(_file())


@cache
def _file() -> str:
    # Another rule of these modules finds another digest in the same sources.
    return f"code-digests-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}"


def read_facts(name: str) -> dict[str, tuple[str, ...]]:
    """Returns what earlier processes kept; nothing where there is no file, or a damaged one.

    name: of the file. It changes with the rule by which the facts are found.
    """
    folder = kernels.cache_folder()
    return {} if folder is None else _read(folder / name)


def keep_facts(name: str, facts: Facts) -> None:
    """Add facts to those that are kept; where they cannot be written, nothing happens."""
    folder = kernels.cache_folder()
    if folder is None:
        return
    # Another process may have added others since: at worst they are found once more.
    kept = {**_read(folder / name), **facts}
    if len(kept) > MOST:
        kept = dict(facts)
    body = "".join(f"{' '.join((source, *words))}\n" for source, words in sorted(kept.items()))
    data = f"{_checked(body)}\n{body}".encode()
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(temporary).replace(folder / name)
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        check, _, body = path.read_text().partition("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    if check != _checked(body):
        return {}
    lines = (line.split(" ") for line in body.splitlines())
    return {source: tuple(words) for source, *words in lines}


def _checked(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()

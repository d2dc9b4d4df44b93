"""Names that are imported when they are first used: public ones, and functions of a declaration.

A declaration names what is heavy by its place, so that looking at it loads no NumPy.
`tests/test_asset.py` looks up every such name of the catalogs and compares its arguments.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Final

_OF_TRAIN: Final = ("megatron", "torch")
"""Packages that the extra `train` brings."""
_PLUMBING: Final = ("__future__", "typing", __name__)


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Have an import that fails within say which extra of Gristmill brings the missing package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _OF_TRAIN:
            raise
        raise ModuleNotFoundError(
            f"{error.msg}: the extra `train` brings it: "
            'in the checkout of Gristmill, run pip install -c constraints.txt -e ".[train]"',
            name=error.name,
        ) from error


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of a package, so that importing it stays cheap.

    package: its name. The imports of its `__init__.py`, above all those below `if TYPE_CHECKING`,
        say its public names and their modules; nothing else of the package does.

    `__getattr__` raises AttributeError for any other name. A loaded name is kept as an attribute of
    the package, so that the module is looked up once.
    """
    spec = sys.modules[package].__spec__
    tree = ast.parse(spec.loader.get_source(package))  # type: ignore[union-attr]
    home = {
        each.name: line.module
        for line in ast.walk(tree)
        if isinstance(line, ast.ImportFrom) and line.module and line.module not in _PLUMBING
        for each in line.names
    }

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with naming_the_extra():
            value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(home), load


@dataclass(frozen=True)
class Call:
    """A function by its place.

    place: `module:function`. first: arguments that come before those of the caller.
    """

    place: str
    first: tuple[Any, ...] = ()

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function. Raises ImportError or AttributeError where there is none."""
        module, _, name = self.place.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what the function returns."""
        return self.function(*self.first, *arguments, **named)


def call(place: str, *first: Any) -> Callable[..., Any]:
    """A function that is imported when it is first called.

    place: `module:function`, as `gristmill.macroxue.laws:pack_laws`.
    first: arguments that come before those of the caller; default: none.
    """
    return Call(place, first)

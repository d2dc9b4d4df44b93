"""Names that are imported when they are first used: public ones, and functions of a declaration.

A declaration names what is heavy by its place, so that looking at it loads no NumPy.
`tests/test_asset.py` looks up every such name of the catalogs and compares its arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Final

_OF_TRAIN: Final = ("megatron", "torch")
"""Packages that the extra `train` brings."""


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


def lazy_exports(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A module-level `__getattr__` for `package`, so that importing the package stays cheap.

    names: module, relative to the package or its whole name -> the public names that it defines.

    The result raises AttributeError for any other name. A loaded name is kept as an attribute of
    the package, so that the module is looked up once.
    """
    home = {name: module for module, public in names.items() for name in public}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with naming_the_extra():
            is_whole = home[name].startswith("gristmill.")
            module = import_module(home[name] if is_whole else f"{package}.{home[name]}")
            value = getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load


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

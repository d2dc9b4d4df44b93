"""Public names of a package that are imported from their module when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
            'in the checkout of Gristmill, run pip install ".[train]"',
            name=error.name,
        ) from error


def lazy_exports(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A module-level `__getattr__` for `package`, so that importing the package stays cheap.

    package: the package's `__name__`.
    names: module relative to the package -> the public names that it defines.

    The result raises AttributeError for any other name. A loaded name is kept as an attribute of
    the package, so that the module is looked up once.
    """
    home = {name: module for module, public in names.items() for name in public}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with naming_the_extra():
            value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load

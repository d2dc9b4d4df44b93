"""Public names of a package that are imported from their module when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load

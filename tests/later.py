"""Modules that are imported when a test first uses them: torch and Megatron take 7 seconds.

Each worker of `pytest -n` collects all files, and runs half of them.
"""

from importlib import import_module
from typing import Any

import pytest

COLLECTED = pytest.StashKey[frozenset[str]]()
"""The modules that were imported when all tests were collected."""


class later:  # noqa: N801
    """A module by its name; the test that uses it skips where `needed` is not installed."""

    def __init__(self, name: str, *needed: str) -> None:
        self._name = name
        self._needed = needed or (name,)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)  # pytest looks at what a file holds
        for needed in self._needed:
            pytest.importorskip(needed)
        return getattr(import_module(self._name), attribute)

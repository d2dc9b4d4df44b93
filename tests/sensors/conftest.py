"""Fixtures for tests of sensors."""

from tests.assets.conftest import instance

__all__ = ["instance"]

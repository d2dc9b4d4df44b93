"""Fixtures for tests of sensors."""

from __future__ import annotations

from tests.assets.conftest import instance

__all__ = ["instance"]

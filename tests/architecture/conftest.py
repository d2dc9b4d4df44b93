"""Fixtures of the rules of the checkout."""

from tests.architecture.toy_family import toy_checkout

__all__ = ["toy_checkout"]

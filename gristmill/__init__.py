"""Gristmill: how raw drops become training-ready datasets."""

from gristmill.old_paths import install as _install

_install()

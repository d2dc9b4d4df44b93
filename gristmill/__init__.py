"""Gristmill: how raw drops become training-ready datasets."""

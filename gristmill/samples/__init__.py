"""Deterministic sample drops of our own making, one module a family."""

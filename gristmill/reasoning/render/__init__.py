"""Rendered text, and the reasoning steps in it."""

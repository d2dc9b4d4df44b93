"""Drops of reasoning corpora: find, fetch, parse, normalise."""

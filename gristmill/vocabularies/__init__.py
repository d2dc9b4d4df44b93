"""Pinned vocabularies: find, verify, fetch and load their files, and encode text with them."""

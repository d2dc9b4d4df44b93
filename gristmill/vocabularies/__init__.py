"""Pinned vocabularies: find, verify, fetch and load their files, and encode text with them.

The sha256 of a file decides whether it is used. What tokens mean to a dataset does
not belong here.
"""

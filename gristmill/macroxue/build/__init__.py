"""Builders of packs, value sidecars and pools: each writes one artifact into a staging folder.

The rules of 2048 belong to `rules`, publishing to `gristmill.publish`.
"""

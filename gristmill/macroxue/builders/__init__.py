"""Builders of packs, value sidecars and pools: each writes one artifact into a new folder.

See also `rules/`: the rules of 2048; `gristmill.publish`: publishing.
"""

"""Builders of the chess assets: each writes one artifact into a staging folder.

The rules of the game belong to `kernels`, publishing to `gristmill.publish`.
"""

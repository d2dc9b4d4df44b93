"""The commands of `gristmill` that need Dagster: one module a command, found as entry points.

`gristmill/cli.py` lists them and imports one when it is called. What a command does to
artifacts stands in `gristmill/`; what an asset is built from stands in `assets/`.
"""

"""The commands of `gristmill` that need Dagster: one module a command, found as entry points.

`gristmill/cli.py` lists them and imports a command's module when the command is called. Work on
artifacts belongs in `gristmill/`, the builds of assets in `assets/`.
"""

"""The commands of `gristmill` that need Dagster: found as entry points.

`adopt`, `build`, `drop`, `fetch`, `materialize`, `prune`, `reap`, `retire` and `ui` are commands;
the other modules help them. `gristmill/command_group.py` lists them and imports a command's module
when it is called. Work on artifacts belongs in `gristmill/`, the builds of assets in `assets/`.
"""

"""The commands of `gristmill` that need Dagster: found as entry points."""

"""The Dagster instance: where it keeps its state, and whether it opens."""

"""The history that Dagster keeps of runs: which of it stays, and where it is on the disk."""

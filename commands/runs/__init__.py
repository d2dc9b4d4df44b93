"""What `gristmill materialize` runs: what needs a run, the runs, and how they came out."""

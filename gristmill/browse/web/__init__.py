"""The pages over the tables of artifacts: `/browse/` of `gristmill ui`, and `gristmill browse`."""

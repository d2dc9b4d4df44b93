"""Rows of a corpus to records, as its file `corpus.toml` says."""

"""The code that decides what a builder writes, for fingerprints."""

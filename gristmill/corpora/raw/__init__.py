"""Drops of corpora: their files, their rows, and what a recipe makes of a row."""

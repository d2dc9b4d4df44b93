"""Artifacts as other programs read them: rows in Parquet, a repository's card, tokens, texts."""

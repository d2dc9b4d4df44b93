"""Artifacts as other programs read them: rows in Parquet, the card of a repository, tokens, texts.

What an artifact has is declared in its family (`Catalog.splits`). The commands are `card` and
`project`. Source: `docs/consumers.md`.
"""

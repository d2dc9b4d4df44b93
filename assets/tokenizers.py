"""Tokenizers in Dagster: the pinned vocabularies, and those that people bring."""

from assets.family import family_of

FAMILY = family_of("tokenizers")

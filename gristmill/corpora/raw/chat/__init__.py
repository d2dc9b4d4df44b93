"""Drops of conversations: their recipes, and the messages of a row."""

"""Sample drops: small puzzles of every kind, always the same."""

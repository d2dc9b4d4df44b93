"""Conversations by other templates than Harmony: to pieces, and pieces to tokens."""

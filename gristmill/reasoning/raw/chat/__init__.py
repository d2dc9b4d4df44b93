"""Conversations: the recipe of a drop of them, and its rows to messages."""

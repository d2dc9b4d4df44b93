"""Conversations and shards for people: drawings of tokens, Markdown previews, terminal text."""

"""Conversations and shards for people: token drawings, Markdown previews, terminal text.

Nothing here changes what is published.
"""

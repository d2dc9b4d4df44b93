"""Packs and pools for people: boards, Markdown previews and tables.

Nothing here changes what is published.
"""

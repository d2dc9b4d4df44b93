"""Packs and pools for people: boards, Markdown previews and tables."""

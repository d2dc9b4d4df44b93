"""Chess for people: boards, Markdown previews, terminal text, and the numbers that the UI plots.

The modules only read; they change nothing that is published.
"""

"""Chess for people: boards, Markdown previews, terminal text, and the numbers that the UI plots."""

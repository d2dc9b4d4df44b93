"""Chess for people: boards, Markdown previews, terminal text and the numbers of the UI.

Nothing here changes what is published.
"""

"""Bring your own text: what `corpus.toml` says of a corpus or of conversations, and their rows.

`corpus` has what a recipe says, the seven `*.toml` the built-in corpora. `raw/` reads drops: which
file is of which split, rows of each format, values and rules of a recipe; `raw/chat/` has
conversations. `gristmill.reasoning` builds the assets. Pages: `docs/corpora.md`, `docs/chat.md`.
"""

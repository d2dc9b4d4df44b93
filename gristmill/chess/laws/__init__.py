"""Laws of the chess artifacts: the rules that their contents must obey.

A law reads an artifact and yields a violation for each rule that is broken. It changes
nothing. One module an asset; `files.py` is shared.
Source: docs/formats/chess.md#laws
"""

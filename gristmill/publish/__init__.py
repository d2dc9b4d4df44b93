"""Publishing: an artifact appears whole or not at all.

Building, checking, recording, committing and removing artifacts belong here; see
`docs/publishing.md`. What a family builds does not.
"""

"""Work in parts: worker processes, the store of finished parts, and progress."""

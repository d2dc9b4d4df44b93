"""Work in parts: worker processes, the store of finished parts, and progress.

No module here knows a family or a format.
"""

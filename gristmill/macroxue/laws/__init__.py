"""Laws of packs, value sidecars and pools, and notes on what is unusual in them.

A law reads an artifact and yields violations; it changes nothing.
"""

"""Laws of packs, pools and value sidecars, and notes on what is unusual in packs.

A law or note reads an artifact and yields violations. It changes nothing.
"""

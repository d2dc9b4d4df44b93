"""Laws of packs, pools and value sidecars, and notes on what is unusual in packs."""

"""2048 self-play logs to packs, value sidecars and pools."""

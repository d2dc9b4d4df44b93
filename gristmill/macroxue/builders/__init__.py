"""Builders of packs, value sidecars and pools: each writes one artifact into a new folder."""

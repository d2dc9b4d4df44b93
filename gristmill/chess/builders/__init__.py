"""Builders of the chess assets: each writes one artifact into a staging folder."""

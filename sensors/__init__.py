"""Sensors: one for each inbox of raw drops, and one for automation conditions."""

"""Normalised conversations to Megatron datasets, by any template."""

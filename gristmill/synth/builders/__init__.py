"""Builders of Harmony shards, Megatron shards and their manifests."""

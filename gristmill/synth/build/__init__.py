"""Builders of Harmony shards, Megatron shards and their manifests.

Each writes one artifact into a staging folder; publishing belongs to `gristmill.publish`.
"""

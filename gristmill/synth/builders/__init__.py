"""Builders of Harmony shards, Megatron shards and their manifests.

A builder writes one artifact into a staging folder. `gristmill.publish` publishes it.
"""

"""Packs and pools for people: columns, tables and boards."""

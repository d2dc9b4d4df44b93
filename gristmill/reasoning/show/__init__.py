"""Artifacts for people: terminal, previews."""

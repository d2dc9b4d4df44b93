"""Builders of the conversations of a drop."""

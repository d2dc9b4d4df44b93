"""Builders of the chess assets: each writes one artifact into a staging folder.

See also `gristmill.publish`: it checks and commits what a builder wrote.
"""

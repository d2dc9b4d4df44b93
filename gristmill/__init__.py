"""Gristmill: how raw drops become training-ready datasets.

The library knows paths, bytes and numbers. It never imports Dagster; the packages `assets`,
`resources` and `sensors` put it to work there.
"""

"""The Dagster layer: thin assets over the library, one module a family."""

import warnings

import dagster as dg

# Backfill policies of assets are in beta in Dagster 1.13, and used knowingly.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

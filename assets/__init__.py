"""The Dagster layer: thin assets over the library, one module a family."""

import gc
import warnings

import dagster as dg

# Backfill policies of assets are in beta in Dagster 1.13, and used knowingly.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
# So that each step of a family's backfill goes on with what came through the one before,
# assets of one job have policies of their own.
warnings.filterwarnings("ignore", message="Asset job .* varying BackfillPolicies")

# Every run starts a process of its own. What Dagster's import leaves lives as long as
# that process, and a collection that walks it costs as much as all our imports.
gc.freeze()

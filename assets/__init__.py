"""The Dagster layer: thin assets over the library, one package for each family."""

import gc
import warnings

import dagster as dg

# Dagster 1.13 marks the backfill policies of assets as beta; we use them on purpose.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
# The assets of one job have different policies on purpose: each step of a backfill then
# continues with the partitions that the step before it built.
warnings.filterwarnings("ignore", message="Asset job .* varying BackfillPolicies")

# Every run starts its own process. The objects of Dagster's import live as long as that
# process, and a garbage collection over them costs as much as all our imports.
gc.freeze()

"""The sensor `check_states`: says what stood about checks that a run left without a verdict."""

import dagster as dg

from assets.checking import runs
from resources import Lake

INTERVAL_SECONDS = 30


@dg.sensor(
    name="check_states",
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "A run that is killed or cancelled leaves the checks that it planned without a verdict. "
        "This sensor reports what stood, and takes back findings on partitions that were retired "
        "or removed. It starts no run."
    ),
)
def check_states(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SkipReason:
    """Reports the states of checks whose last run is over and did not evaluate them."""
    reported = runs.settle_ended(context.instance, lake)
    if not reported:
        return dg.SkipReason("every check shows what it last found")
    names = ", ".join(sorted(key.to_user_string() for key in reported))
    return dg.SkipReason(f"reported again what stood: {names}")

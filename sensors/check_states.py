"""The sensor `check_states`: keeps what checks show true, without a run.

It says what stood about checks that a run left without a verdict, and looks again with those that
follow another asset (`follows` of `assets/checking/rules.py`), such as the packs of a pool.
"""

import json

import dagster as dg

from assets.checking import evaluations
from assets.checking.rules import CHECKED
from gristmill.contract import GristmillError
from gristmill.layout import refuse_missing_root
from gristmill.printable import plain
from resources import Lake

INTERVAL_SECONDS = 30


@dg.sensor(
    name="check_states",
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "A run that is killed or cancelled leaves the checks that it planned without a verdict. "
        "This sensor reports what stood, and takes back findings on partitions that were retired "
        "or removed. It also checks the pools after a pack was built. It starts no run."
    ),
)
def check_states(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SkipReason:
    """Reports the states of checks that show something else."""
    try:
        refuse_missing_root(lake.root)
    except GristmillError as error:  # its artifacts are not gone
        return dg.SkipReason(plain(str(error)))
    instance = context.instance
    before = _seen(context.cursor)
    rules = [rule for checked in CHECKED.values() for rule in checked.rules.values()]
    followed = {key for rule in rules for key in rule.follows}
    now = {}
    for record in instance.get_asset_records(sorted(followed)):
        event = record.asset_entry.last_materialization_storage_id
        if event is not None:
            now[_name(record.asset_entry.asset_key)] = event
    reported = set(evaluations.settle_ended(instance, lake))
    for checked in CHECKED.values():
        for rule in checked.rules.values():
            if any(now.get(name) != before.get(name) for name in map(_name, rule.follows)):
                reported |= set(evaluations.look_again(instance, lake, checked, rule))
    context.update_cursor(json.dumps(now))
    if not reported:
        return dg.SkipReason("every check shows what it last found")
    names = ", ".join(sorted(key.to_user_string() for key in reported))
    return dg.SkipReason(f"reported again: {names}")


def _seen(cursor: str | None) -> dict[str, object]:
    """What the tick before wrote; nothing for another text, as a person may type one in the UI."""
    try:
        found = json.loads(cursor or "{}")
    except (RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _name(asset: dg.AssetKey) -> str:
    return asset.to_user_string()

"""Looks of the sensors of inboxes, in this process, and what runs are for that they request."""

import dagster as dg

import definitions
from assets.inbox import Inbox
from assets.versions import RANGE
from resources import Lake
from sensors.raw_drops import raw_drop_sensor


class Ticks:
    """Looks of the sensor of an inbox; each continues where the last one ended.

    defs: what the sensor sees; by default the definitions of all families.
    adds: whether the instance gets the partitions that a look asks for.
    """

    def __init__(
        self,
        inbox: Inbox,
        instance: dg.DagsterInstance,
        lake: Lake,
        defs: dg.Definitions | None = None,
        adds: bool = False,
    ) -> None:
        self._sensor, self._adds = raw_drop_sensor(inbox), adds
        self._instance, self._lake = instance, lake
        self._defs = defs or definitions.build_defs({"lake": lake})
        self.cursor: str | None = None
        (lake.root / "gristmill.toml").write_text("[inbox]\nsettle_seconds = 0\n")

    def __call__(self) -> dg.SensorResult:
        context = dg.build_sensor_context(
            instance=self._instance,
            cursor=self.cursor,
            resources={"lake": self._lake},
            definitions=self._defs,
        )
        result = self._sensor(context)
        if isinstance(result, dg.SkipReason):
            return dg.SensorResult(skip_reason=result)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        for request in (result.dynamic_partitions_requests or []) if self._adds else []:
            name, keys = str(request.partitions_def_name), request.partition_keys or []
            self._instance.add_dynamic_partitions(name, keys)
        return result


def partitions_of(request: dg.RunRequest) -> list[str]:
    """The partition of a run; first and last of a run of several."""
    ends = [request.tags[name] for name in RANGE if name in request.tags]
    return ends or [str(request.partition_key)]

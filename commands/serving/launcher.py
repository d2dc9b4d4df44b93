"""The launcher of runs that `dagster.yaml` names: no run stays without a process.

Dagster's own launcher sees the death of a run only while the code server that started it lives.
This one notices that the process of a run is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets import worker
from commands import dagster_private


class LocalHealthLauncher(dg.DefaultRunLauncher):
    """Dagster's launcher on this machine; run monitoring asks it whether a run's process lives."""

    def __init__(self, inst_data: Any = None) -> None:
        super().__init__(inst_data)
        worker.tune_databases()

    @classmethod
    def config_type(cls) -> Any:
        """The config in `dagster.yaml`: `fork_runs` of earlier versions is read and has no use."""
        return {"fork_runs": dg.Field(bool, is_required=False)}

    @classmethod
    def from_config_value(
        cls, inst_data: Any, config_value: Mapping[str, Any]
    ) -> LocalHealthLauncher:
        """The launcher of a block of `dagster.yaml`."""
        return cls(inst_data)

    def register_instance(self, instance: dg.DagsterInstance) -> None:
        """Take the instance whose runs to launch, and hold its databases open."""
        super().register_instance(instance)
        worker.hold_databases(instance)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether `check_run_worker_health` answers: False where Dagster has no such check."""
        return dagster_private.HAS_HEALTH

    def check_run_worker_health(self, run: dg.DagsterRun) -> Any:
        """Returns that the process of a run lives, or that it is gone; unknown counts as alive."""
        return dagster_private.health_of_process(self._instance, run)

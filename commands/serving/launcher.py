"""The launcher of runs that `dagster.yaml` names: quick starts, and no run without a process.

Dagster's own launcher starts a process for each run, which imports Dagster and loads the
definitions before it builds anything, and it sees the death of a run only while the code server
that started it lives. This one forks a process that has loaded both (`forked_runs.py`), and notices
that the process of a run is gone. See also `commands/reap.py`, which closes dead runs when nothing
serves the instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from assets import worker
from assets.history import open_databases, small_databases
from commands import dagster_private
from commands.serving.forked_runs import ForkedRuns
from resources.lake import LOCATION

_PATIENCE_SECONDS: Final = 30.0


class LocalHealthLauncher(dg.DefaultRunLauncher):
    """Dagster's launcher on this machine; run monitoring asks it whether a run's process lives.

    fork_runs: whether runs are forked from a process that has loaded the code; else, and where
        that is not possible, each run gets a process from the code server.
    inst_data: of the block of `dagster.yaml`.
    """

    def __init__(self, fork_runs: bool = True, inst_data: Any = None) -> None:
        super().__init__(inst_data)
        small_databases.install()
        self._forked = ForkedRuns() if fork_runs else None

    @classmethod
    def config_type(cls) -> Any:
        """The config in `dagster.yaml`: `fork_runs`, true unless it says something else."""
        return {"fork_runs": dg.Field(bool, default_value=True, is_required=False)}

    @classmethod
    def from_config_value(
        cls, inst_data: Any, config_value: Mapping[str, Any]
    ) -> LocalHealthLauncher:
        """The launcher of a block of `dagster.yaml`."""
        return cls(config_value["fork_runs"], inst_data)

    def register_instance(self, instance: dg.DagsterInstance) -> None:
        """Take the instance whose runs to launch, and hold its databases open.

        A process takes it when it first launches a run or looks at one. What the daemon, the web
        server and every run write from then on waits less: see `assets/history/open_databases.py`.
        """
        super().register_instance(instance)
        open_databases.hold(instance)

    def launch_run(self, context: Any) -> None:
        """Start the process of a run.

        context: Dagster's; it has the run and the workspace.
        """
        run: dg.DagsterRun = context.dagster_run
        process = None
        if self._forked is not None and _is_of_this_machine(context):
            process = self._forked.start(self._instance, run)
        if process is None:
            super().launch_run(context)
            return
        self._run_ids.add(run.run_id)
        # None where it has ended already.
        if (signature := worker.identity(process)) is not None:
            tags = {worker.TAG: signature, worker.FORKED: "true"}
            self._instance.add_run_tags(run.run_id, tags)

    def terminate(self, run_id: str) -> bool:
        """Ask a run to cancel itself; returns False where it has no process that could.

        run_id: the id of the run.
        """
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        if run is None or run.is_finished or worker.FORKED not in run.tags:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        self._instance.report_run_canceling(run)
        return worker.interrupt(run.tags[worker.TAG])

    def dispose(self) -> None:
        """End what starts runs. Runs that were asked to stop get a while to do so."""
        if self._forked is not None:
            self._forked.close(_PATIENCE_SECONDS)
        super().dispose()

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether `check_run_worker_health` answers: False where Dagster has no such check."""
        return dagster_private.HAS_HEALTH

    def check_run_worker_health(self, run: dg.DagsterRun) -> Any:
        """Returns that the process of a run lives, or that it is gone; unknown counts as alive.

        run: a run that says it is under way.
        """
        is_gone = worker.is_running(self._instance, run) is False
        return dagster_private.health("the process of the run is gone" if is_gone else None)


def _is_of_this_machine(context: Any) -> bool:
    """Whether the code of a run is the project's, served over a socket of this machine."""
    origin = context.dagster_run.remote_job_origin
    if origin is None or context.workspace is None or origin.location_name != LOCATION:
        return False
    location = context.workspace.get_code_location(LOCATION)
    return getattr(getattr(location, "client", None), "socket", None) is not None

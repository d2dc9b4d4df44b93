"""What Dagster does not export: each name is imported here, with a way to do without it.

`tests/commands/test_dagster_private.py` fails where a release of Dagster moves one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from resources.lake import LOCATION

try:
    from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus

    HAS_HEALTH = True
    """Whether a launcher can say that the process of a run is gone."""
except ImportError:
    HAS_HEALTH = False

try:
    from dagster._core.definitions.job_base import InMemoryJob
    from dagster._core.execution.api import execute_run
    from dagster._core.remote_origin import (
        RegisteredCodeLocationOrigin,
        RemoteJobOrigin,
        RemoteRepositoryOrigin,
    )

    HAS_ORIGIN = True
    """Whether a run of this process can name its code location, as the timeline needs it."""
except ImportError:
    HAS_ORIGIN = False

Result = Any
"""The result of a run in this process: events, and whether it succeeded."""

_REPOSITORY: Final = "__repository__"  # Dagster's name for the definitions of a code location
# The table at the end has the failures and their reasons, and the UI has the log.
_QUIET: Final = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_here(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    asset: dg.AssetKey,
    tags: Mapping[str, str],
) -> Result:
    """Run one asset and its checks in this process; an error of the asset is in the result.

    instance: the Dagster instance.
    job: the job of all assets.
    asset: key of the asset.
    tags: of the run, those of its partitions among them.

    `execute_in_process`, the public way, makes runs that the timeline leaves out.
    """
    if not HAS_ORIGIN:
        return job.execute_in_process(
            instance=instance,
            asset_selection=[asset],
            run_config=_QUIET,
            tags=dict(tags),
            raise_on_error=False,
        )
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(LOCATION), _REPOSITORY)
    created = instance.create_run_for_job(
        job_def=job.get_subset(asset_selection=frozenset([asset])),
        run_config=_QUIET,
        tags={**tags, "dagster/code_location": LOCATION},
        remote_job_origin=RemoteJobOrigin(repository, job.name),
        asset_selection=frozenset([asset]),
    )
    return execute_run(InMemoryJob(job), created, instance)


def health(gone: str | None) -> Any:
    """Returns what a launcher answers when run monitoring asks for the health of a run.

    gone: why the process of the run is gone; None if it lives.

    Raises RuntimeError where HAS_HEALTH is False.
    """
    if not HAS_HEALTH:
        raise RuntimeError(f"Dagster {dg.__version__} has no health checks of launchers")
    if gone is None:
        return CheckRunHealthResult(WorkerStatus.RUNNING)
    return CheckRunHealthResult(WorkerStatus.FAILED, gone)


def gone(launcher: Any, run: dg.DagsterRun) -> str | None:
    """Returns why a run is gone, as its launcher says; None if it lives, or nobody can say.

    launcher: of the instance; it may not be the one that started the run.
    run: a run that says it is under way.
    """
    if not HAS_HEALTH or not launcher.supports_check_run_worker_health:
        return None
    found = launcher.check_run_worker_health(run)
    return str(found.msg) if found.status == WorkerStatus.FAILED else None


def is_unknown(answer: Any) -> bool:
    """Returns whether a launcher could not say if a run lives.

    answer: of `check_run_worker_health`.
    """
    return bool(answer.status == WorkerStatus.UNKNOWN)

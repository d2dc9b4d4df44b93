"""What Dagster does not export: each name is imported here, with a way to do without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, Final

import dagster as dg

from assets import worker
from gristmill.run import interrupts
from resources import LOCATION

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

_MADE_BY: Final = "create_engine"
try:
    from dagster._core.storage.event_log.sqlite import sqlite_event_log
    from dagster._core.storage.runs.sqlite import sqlite_run_storage
    from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

    _ON_SQLITE = (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage)
    HAS_ENGINES = all(hasattr(module, _MADE_BY) for module in _ON_SQLITE)
    """Whether the storages on SQLite make their engines by a name that can be replaced."""
except ImportError:
    HAS_ENGINES = False

Result = Any
"""The result of a run in this process: events, and whether it succeeded."""

_MOST_ENGINES: Final = 8  # three databases of the instance, and those of the latest runs
_REPOSITORY: Final = "__repository__"  # Dagster's name for the definitions of a code location
# The table at the end has the failures and their reasons, and the UI has the log.
_QUIET: Final = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@cache
def keep_engines() -> None:
    """Let Dagster's storages on SQLite make one engine for each database, not for each statement.

    An engine keeps the statements that it has compiled. It keeps no connection: the storages ask
    for none to be kept.
    """
    if HAS_ENGINES:
        for module in _ON_SQLITE:
            made = _keeping(getattr(module, _MADE_BY))
            setattr(module, _MADE_BY, made)


def _keeping(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `make` that returns the engine of before for the same arguments."""
    kept: dict[str, Any] = {}

    def engine(address: str, **options: Any) -> Any:
        key = repr((address, sorted(options.items())))
        found = kept[key] = kept.pop(key, None) or make(address, **options)
        if len(kept) > _MOST_ENGINES:
            kept.pop(next(iter(kept)), None)
        return found

    return engine


def run_here(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    asset: dg.AssetKey,
    tags: Mapping[str, str],
    config: Mapping[str, Any] | None = None,
) -> Result:
    """Run one asset and its checks in this process; an error of the asset is in the result.

    `execute_in_process`, the public way, makes runs that the timeline leaves out.
    """
    run_config = {**_QUIET, **(config or {})}
    if not HAS_ORIGIN:
        return job.execute_in_process(
            instance=instance,
            asset_selection=[asset],
            run_config=run_config,
            tags=dict(tags),
            raise_on_error=False,
        )
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(LOCATION), _REPOSITORY)
    subset = job.get_subset(asset_selection=frozenset([asset]))
    created = None
    try:
        with interrupts.held(), worker.stored_together(instance):
            created = instance.create_run_for_job(
                job_def=subset,
                run_config=run_config,
                tags={**tags, "dagster/code_location": LOCATION},
                remote_job_origin=RemoteJobOrigin(repository, job.name),
                asset_selection=frozenset([asset]),
            )
        with _quiet_tails(), _patient_handlers():
            return execute_run(InMemoryJob(job), created, instance)
    finally:
        if created is not None:
            run = instance.get_run_by_id(created.run_id)
            if run is not None and not run.is_finished:
                instance.report_run_canceled(run, "It was interrupted.")


@contextmanager
def _patient_handlers() -> Iterator[None]:
    """Let Ctrl-C interrupt the steps of a run, and not Dagster's own work beside them."""
    try:
        from dagster._utils import interrupts as of_dagster

        replace, capture = of_dagster._replace_interrupt_signal, of_dagster.capture_interrupts
    except (ImportError, AttributeError):
        yield
        return
    of_dagster._replace_interrupt_signal = lambda handler: replace(  # type: ignore[assignment]
        interrupts.patient(handler) if callable(handler) else handler
    )
    try:
        with capture():
            yield
    finally:
        of_dagster._replace_interrupt_signal = replace


@contextmanager
def _quiet_tails() -> Iterator[None]:
    """Keep Ctrl-C from the processes that show what a step prints: each prints a stack trace."""
    try:
        from dagster._core.execution import compute_logs

        tail = compute_logs.execute_posix_tail
    except (ImportError, AttributeError):
        yield
        return

    @contextmanager
    def quiet(*arguments: Any) -> Iterator[Any]:
        with ExitStack() as stack:
            with interrupts.not_for_children():
                processes = stack.enter_context(tail(*arguments))
            yield processes

    compute_logs.execute_posix_tail = quiet  # type: ignore[assignment]
    try:
        yield
    finally:
        compute_logs.execute_posix_tail = tail


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


def health_of_process(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Any:
    """Returns the health of a run by its process on this machine; unknown counts as alive."""
    is_gone = worker.is_running(instance, run) is False
    return health("the process of the run is gone" if is_gone else None)


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
    """Returns whether a launcher could not say if a run lives."""
    return bool(answer.status == WorkerStatus.UNKNOWN)

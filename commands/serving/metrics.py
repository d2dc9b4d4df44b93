"""`gristmill metrics`: numbers of the instance and of the data root, in the form of Prometheus."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import dagster as dg

from commands.checkout import CheckoutCommand, open_instance
from commands.terminal import say
from resources.lake import CHECKOUT, Lake

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

HOST: Final = "127.0.0.1"
_LOOK_SECONDS: Final = 0.5


@click.command(cls=CheckoutCommand, needs_data_root=False)
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    help=f"Serve them at http://{HOST}:PORT/metrics until Ctrl-C.  [default: print them once]",
)
def metrics(port: int | None) -> None:
    """Print numbers of the instance and the data root for Prometheus, or serve them.

    Runs by status, heartbeats of daemons, the last tick of each sensor and schedule, the last
    build of each asset, and free room on the disks. It may run beside anything, also while
    nothing is served.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest, start_http_server
    except ImportError as error:
        raise click.ClickException(
            'numbers need the extra `metrics`: in the checkout, run pip install -e ".[metrics]" '
            f"({error})"
        ) from error
    registry = CollectorRegistry()
    with open_instance() as instance:
        registry.register(Numbers(instance, Lake().root))
        if port is None:
            click.echo(generate_latest(registry), nl=False)
            return
        try:
            server, thread = start_http_server(port, HOST, registry)
        except OSError as error:
            raise click.ClickException(f"port {port}: {error.strerror}") from error
        say(f"numbers at http://{HOST}:{port}/metrics, until Ctrl-C")
        try:
            # With a time: a signal that another thread takes does not wake an endless wait.
            while thread.is_alive():
                thread.join(_LOOK_SECONDS)
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            thread.join()


class Numbers:
    """What a registry of prometheus_client collects."""

    def __init__(self, instance: dg.DagsterInstance, root: Path) -> None:
        self._instance, self._root = instance, root

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families of numbers; times are seconds since 1970."""
        yield _family(
            "runs",
            "Runs that the instance knows.",
            ("status",),
            {(status.value,): self._runs(status) for status in dg.DagsterRunStatus},
        )
        beats = self._instance.get_daemon_heartbeats()
        yield _family(
            "daemon_heartbeat_timestamp_seconds",
            "When each daemon last said that it is alive.",
            ("daemon",),
            {(daemon,): beat.timestamp for daemon, beat in beats.items()},
        )
        yield from self._ticks()
        yield _family(
            "asset_materialized_timestamp_seconds",
            "When a partition of each asset was last built, or was found current.",
            ("asset",),
            dict(self._built()),
        )
        yield _family(
            "disk_free_bytes",
            "Room that is left on the disk.",
            ("place",),
            {("data_root",): _free(self._root), ("checkout",): _free(CHECKOUT)},
        )

    def _runs(self, status: dg.DagsterRunStatus) -> int:
        return self._instance.get_runs_count(dg.RunsFilter(statuses=[status]))

    def _ticks(self) -> Iterator[GaugeMetricFamily]:
        times: dict[tuple[str, ...], float] = {}
        failed: dict[tuple[str, ...], float] = {}
        for state in self._instance.all_instigator_state():
            key = (state.instigator_name,)
            origin, selector = state.instigator_origin_id, state.selector_id
            for tick in self._instance.get_ticks(origin, selector, limit=1):
                if tick.timestamp >= times.get(key, 0.0):  # an older code location had it, too
                    times[key], failed[key] = tick.timestamp, float(tick.is_failure)
        yield _family(
            "tick_timestamp_seconds",
            "When the last tick of each sensor and schedule began.",
            ("name",),
            times,
        )
        yield _family("tick_failed", "1 where that tick failed, else 0.", ("name",), failed)

    def _built(self) -> Iterator[tuple[tuple[str], float]]:
        for record in self._instance.get_asset_records():
            entry = record.asset_entry
            if entry.last_materialization_record is not None:
                name = entry.asset_key.to_user_string()
                yield (name,), entry.last_materialization_record.timestamp


def _family(
    name: str, text: str, labels: tuple[str, ...], values: dict[tuple[str, ...], float]
) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(f"gristmill_{name}", text, labels=labels)
    for given, value in sorted(values.items()):
        family.add_metric(given, value)
    return family


def _free(folder: Path) -> int:
    """Free bytes for this user; of the nearest folder that exists."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free

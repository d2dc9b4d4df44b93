"""Drive the project's Dagster instance without the UI.

`python operate.py materialize --all` builds everything that the drops at hand
give; `reap` and `retire` mend what Dagster's own commands cannot. All work on
the instance that `make ui` serves.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import dagster as dg
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import definitions
from assets import worker
from assets.inbox import Inbox
from assets.publishing import REBUILD
from assets.versions import latest
from gristmill import keys, provenance
from gristmill.contract import GristmillError
from gristmill.inbox import at_hand
from gristmill.publish import remove
from gristmill.synth.raw import files as raw
from resources import CorporaHub
from resources.lake import CHECKOUT, Lake
from sensors.raw_drops import arrival_events

_RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_UNFINISHED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

# Which partitions `--all` takes, where not all that are known.
FAMILIES = list(definitions.families())
INBOXES = [inbox for family in FAMILIES for inbox in family.inboxes]
AVAILABLE = {
    key: family.available
    for family in FAMILIES
    if family.available is not None
    for asset in family.assets
    if isinstance(asset, dg.AssetsDefinition)
    for key in asset.keys
}

# Where nothing else decides, assets are built in the order in which their families name them.
_ORDER = [
    key
    for family in FAMILIES
    for asset in family.assets
    for key in ([asset.key] if isinstance(asset, dg.AssetSpec) else sorted(asset.keys))
]

# The table tells what failed and why; the UI has the log.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

# Where nobody looks at a terminal, a line of the table stays a line.
console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)


class _Group(click.Group):
    """Turns the library's errors into their own words and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GristmillError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, help=__doc__)
@click.pass_context
def main(context: click.Context) -> None:
    context.obj = started_in = Path.cwd()
    if named := os.environ.get("GRISTMILL_DATA"):
        os.environ["GRISTMILL_DATA"] = str(started_in / named)
    # dagster.yaml names its folders relative to where a command starts.
    os.chdir(CHECKOUT)


def say(line: str) -> None:
    """Print one line whole, however wide; brackets in names and reasons stay what they are."""
    console.print(line, soft_wrap=True)


def open_instance() -> dg.DagsterInstance:
    """The instance of DAGSTER_HOME if that is set, as `dagster dev` does, else the checkout's."""
    if os.environ.get("DAGSTER_HOME"):
        return dg.DagsterInstance.get()
    return dg.DagsterInstance.from_config(str(CHECKOUT))


@dataclass(frozen=True)
class Outcome:
    """What became of one partition: a row of the table."""

    asset: str
    partition: str
    status: str
    rows: int | None = None
    bytes: int = 0
    seconds: float = 0.0
    place: str = ""
    reason: str = ""


@main.command()
@click.argument("selection", nargs=-1)
@click.option("--partition", "partitions", multiple=True, help="Only this partition; repeatable.")
@click.option("--all", "everything", is_flag=True, help="Every asset, every partition at hand.")
@click.option("--rebuild", is_flag=True, help="Build anew what would be found unchanged.")
@click.pass_obj
def materialize(
    started_in: Path,
    selection: tuple[str, ...],
    partitions: tuple[str, ...],
    everything: bool,
    rebuild: bool,
) -> None:
    """Build assets, as in `macroxue/pack --partition d6_v1`, or `--all`.

    Drops at hand become partitions first. Ends with a table of what was built
    and where it lies, and with status 1 if a build or a check failed. Drops that
    are refused are named, and leave the status alone.
    """
    if bool(selection) == everything:
        raise click.UsageError("name assets to build, or say --all")
    if partitions and everything:
        raise click.UsageError("--partition goes with the name of an asset, not with --all")
    lake, started = Lake(), time.monotonic()
    with open_instance() as instance:
        refused = {inbox.folder: list(register(instance, lake, inbox)) for inbox in INBOXES}
        graph = Graph(instance, lake)
        chosen = graph.select(selection)
        for asset in chosen:
            graph.keys(asset, partitions)  # a name that is not there is told before work starts
        outcomes: list[Outcome] = []
        idle: set[dg.AssetKey] = set()
        for asset in chosen:
            wanted = graph.keys(asset, partitions)
            if not wanted:
                idle.add(asset)
            outcomes += graph.materialize(asset, wanted, rebuild)
            for inbox in _not_begun(chosen[: chosen.index(asset) + 1]):
                # What was built may be what its drops were waiting for: a pool its packs.
                refused[inbox.folder] = list(register(instance, lake, inbox))
        fed = [inbox for inbox in INBOXES if any(target.key in chosen for target in inbox.targets)]
        hungry = not any(graph.keys(asset.key, ()) for inbox in fed for asset in inbox.targets)
    if outcomes:
        show(outcomes, time.monotonic() - started, started_in)
    for line in (line for lines in refused.values() for line in lines):
        say(f"[yellow]refused[/] {escape(line)}")
    if fed and hungry and not partitions:
        inboxes = " or ".join(str(lake.inbox(inbox.folder)) for inbox in fed)
        say(
            f"no drop is at hand: copy one into {escape(inboxes)}, or let "
            f"`gristmill samples {escape(str(lake.root))}` write some"
        )
    elif idle:
        names = ", ".join(sorted(asset.to_user_string() for asset in idle))
        say(f"not built, since no drop is at hand for them: {names}")
    if any(outcome.status == "failed" for outcome in outcomes):
        sys.exit(1)


def _not_begun(assets: Sequence[dg.AssetKey]) -> list[Inbox]:
    """The inboxes that feed none of `assets`.

    A drop that lands between two assets of its inbox would miss the first one.
    """
    return [inbox for inbox in INBOXES if not any(target.key in assets for target in inbox.targets)]


def register(instance: dg.DagsterInstance, lake: Lake, inbox: Inbox) -> Iterator[str]:
    """Make the drops at hand known to the instance; yields what is refused and why."""
    found = at_hand(lake.inbox(inbox.folder), inbox.refuse, inbox.shape)
    if new := inbox.new_keys(instance, found.arrivals):
        instance.add_dynamic_partitions(str(inbox.dynamic), new)
    ones = {arrival.key: next(iter(inbox.fed_by(arrival.key))) for arrival in found.arrivals}
    known = latest(instance, inbox.raw_drop, sorted(set(ones.values())))
    for arrival in found.arrivals:
        version, _ = known.get(ones[arrival.key], (None, 0))
        if version != arrival.signature:
            for told in arrival_events(inbox, arrival):
                instance.report_runless_asset_event(told)
    for refusal in found.refusals:
        yield f"{inbox.folder}/{refusal.key}: {refusal.reason}"


class Graph:
    """The project's assets, to be run in this process against an instance."""

    def __init__(self, instance: dg.DagsterInstance, lake: Lake) -> None:
        self._instance = instance
        self._lake = lake
        defs = definitions.build_defs()
        self._job = defs.resolve_implicit_global_asset_job_def()
        self._graph = defs.resolve_asset_graph()

    def select(self, names: Sequence[str]) -> list[dg.AssetKey]:
        """The named assets, or all that can be built, each after what it is made from."""
        ordered = [
            key
            for level in self._graph.toposorted_asset_keys_by_level
            for key in sorted(level, key=_ORDER.index)
            if self._graph.get(key).is_materializable
        ]
        wanted = {dg.AssetKey.from_user_string(name) for name in names}
        if unknown := wanted - set(ordered):
            known = ", ".join(key.to_user_string() for key in ordered)
            name = unknown.pop().to_user_string()
            raise click.UsageError(f"{name} is not an asset that can be built; there are: {known}")
        return [key for key in ordered if not names or key in wanted]

    def partitioned_by(self, definition: dg.PartitionsDefinition[str]) -> set[str]:
        """Names of the assets that are partitioned by `definition`."""
        return {
            key.to_user_string()
            for key in self._graph.materializable_asset_keys
            if self._graph.get(key).partitions_def == definition
        }

    def keys(self, asset: dg.AssetKey, wanted: Sequence[str]) -> list[str | None]:
        """The partitions to build: those wanted, else those at hand; [None] where there are none.

        At hand are all that are known, unless the asset's wing says which.
        """
        definition = self._graph.get(asset).partitions_def
        if definition is None:
            if wanted:
                raise click.UsageError(f"{asset.to_user_string()} has no partitions")
            # It is made from all partitions of others, if there are any.
            return [None] if asset not in AVAILABLE or AVAILABLE[asset](self._lake) else []
        known = definition.get_partition_keys(dynamic_partitions_store=self._instance)
        if unknown := sorted(set(wanted) - set(known)):
            raise click.UsageError(
                f"{asset.to_user_string()} has no partition {unknown[0]!r}; there are: "
                f"{_listed(known)}"
            )
        if not wanted and asset in AVAILABLE:
            wanted = sorted(AVAILABLE[asset](self._lake))
            return [key for key in known if key in wanted]
        return [key for key in known if not wanted or key in wanted]

    def materialize(
        self, asset: dg.AssetKey, keys: Sequence[str | None], rebuild: bool
    ) -> Iterator[Outcome]:
        """Run one asset, a run a partition, so that each stands by itself in the UI."""
        for key in keys:
            with console.status(f"{asset.to_user_string()} {key or ''}"):
                result = self._job.execute_in_process(
                    instance=self._instance,
                    asset_selection=[asset],
                    run_config=_QUIET,
                    partition_key=key,
                    # Before the first asset signs, `reap` would take the run for a dead one.
                    tags={
                        worker.TAG: worker.identity(os.getpid()) or "",
                        **({REBUILD: "true"} if rebuild else {}),
                    },
                    raise_on_error=False,
                )
            yield _outcome(asset.to_user_string(), key or "", result)


def _listed(known: Sequence[str]) -> str:
    """Partition keys for an error: of many the first and the last."""
    if len(known) > 40:
        return f"{', '.join(known[:2])} … {', '.join(known[-2:])}"
    return ", ".join(known) or "none"


def _outcome(asset: str, partition: str, result: dg.ExecuteInProcessResult) -> Outcome:
    events = result.get_asset_materialization_events()
    if result.success and not events and (observed := result.get_asset_observation_events()):
        reason = observed[-1].asset_observation_data.asset_observation.metadata["reason"].value
        return Outcome(asset, partition, "not built", reason=str(reason))
    broken = [
        f"check {done.check_name}: {done.description}"
        for done in result.get_asset_check_evaluations()
        if not done.passed and done.severity is dg.AssetCheckSeverity.ERROR
    ]
    if broken and events:
        named = f" --partition {partition}" if partition else ""
        hint = f"if its files are damaged, materialize {asset}{named} --rebuild"
        return Outcome(asset, partition, "failed", reason=f"{'; '.join(broken)}: {hint}")
    if not result.success or not events:
        failures = [event.step_failure_data for event in result.get_step_failure_events()]
        told = failures[0].user_failure_data if failures else None
        error = failures[0].error if failures else None
        # What the library did not foresee comes with its trace.
        text = told.description if told else error.to_string() if error else "the run failed"
        return Outcome(asset, partition, "failed", reason=str(text).strip())
    metadata = {
        name: value.value
        for name, value in events[-1].step_materialization_data.materialization.metadata.items()
    }
    return Outcome(
        asset,
        partition,
        status=metadata["status"],
        rows=metadata.get("dagster/partition_row_count"),
        bytes=metadata["bytes"],
        seconds=metadata["seconds"],
        place=str(metadata["path"]),
    )


def show(outcomes: Sequence[Outcome], seconds: float, started_in: Path) -> None:
    """The table at the end of a build, and what to do about what failed."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("asset", "partition", "status", "where it lies"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "bytes", "seconds"):
        table.add_column(name, justify="right")
    for item in outcomes:
        rows = "" if item.rows is None else f"{item.rows:,}"
        colour = {"built": "green", "failed": "red"}.get(item.status, "default")
        place = Path(item.place)
        shown = place.relative_to(started_in) if place.is_relative_to(started_in) else place
        table.add_row(
            item.asset,
            escape(item.partition),
            f"[{colour}]{item.status}[/]",
            escape(str(shown)) if item.place else "",
            rows,
            f"{item.bytes:,}" if item.place else "",
            f"{item.seconds:.2f}" if item.place else "",
        )
    console.print(table)
    for item in outcomes:
        if item.reason:
            colour = "red" if item.status == "failed" else "yellow"
            told = f"{item.asset} {escape(item.partition)}: {escape(item.reason)}"
            say(f"[{colour}]{item.status}[/] {told}")
    built = sum(item.status == "built" for item in outcomes)
    if all(item.status in ("unchanged", "not built") for item in outcomes):
        say(f"nothing needed doing ({len(outcomes)} artifacts, {seconds:.1f} s)")
    else:
        say(f"{built} built in {seconds:.1f} s; `make ui` shows them")


@main.command()
@click.argument("corpus", type=click.Choice(["synth"]))
@click.option("--files", default=raw.FILES, show_default=True, help="How many, from the first on.")
@click.option("--repo", default=raw.DATASET, show_default=True, help="The dataset's repository.")
@click.option("--revision", default=raw.REVISION, show_default=True, help="A commit's 40 digits.")
@click.option("--endpoint", default="", help="Address of the hub, if not the public one.")
def fetch(corpus: str, files: int, repo: str, revision: str, endpoint: str) -> None:
    """Bring the raw files of CORPUS from its hub into a drop, where the sensor takes them up.

    A fetch that broke off goes on where it stopped. HF_TOKEN is sent if it is set.
    """
    try:
        hub = CorporaHub(repo=repo, revision=revision, files=files, endpoint=endpoint)
        inbox = Lake().inbox(corpus)
        say(f"{escape(repo)} at {escape(revision[:8])}, {files} files to {escape(str(inbox))}")
        fetched = hub.fetch(inbox)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    kept = len(fetched.files) - fetched.downloaded
    say(
        f"{escape(str(inbox / hub.drop))}: {fetched.downloaded} files came "
        f"({fetched.bytes:,} bytes), {kept} were there; `materialize --all` builds from it"
    )


@main.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--parts", is_flag=True, help="Sweep finished parts of builds, too.")
def reap(dry_run: bool, parts: bool) -> None:
    """Close runs whose process is gone, and sweep what killed builds left behind.

    A power loss or kill -9 of everything leaves runs STARTED for ever, and they
    hold their places in the queue. Runs whose process lives are left alone.
    Finished parts of a build stay, since the next one goes on from them, unless
    --parts is given.
    """
    with open_instance() as instance:
        for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
            run = record.dagster_run
            if reason := why_dead(run.tags):
                say(f"run {run.run_id[:8]} ({run.status.value}): {reason}")
                if not dry_run:
                    instance.report_run_failed(run, f"Reaped: {reason}.")
                    instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    for folder in remove.abandoned(Lake().root):
        finished = 0 if parts else remove.finished_parts(folder)
        kept = f"; its finished parts ({finished}) stay for the next build" if finished else ""
        say(f"left by a killed build: {escape(str(folder))}{kept}")
        if not dry_run:
            remove.sweep(folder, keep_parts=not parts)


def why_dead(tags: dict[str, str]) -> str | None:
    """Why a run that says it is under way cannot be, None where it may well be."""
    signature = tags.get(worker.TAG)
    if signature is not None:
        return None if worker.is_alive(signature) else "its process is gone"
    server = tags.get(".dagster/grpc_info")
    if server is None:
        return "it never reached a process of this machine"
    return None if worker.answers(server) else "the code server that launched it is gone"


@main.command()
@click.argument("key")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--artifacts", is_flag=True, help="Delete what was built from the drop, too.")
def retire(key: str, dry_run: bool, artifacts: bool) -> None:
    """Forget the partition KEY of a drop that is gone.

    Refused while the drop is still there: the sensor would bring it back. What
    was built from it stays, unless --artifacts is given.
    """
    lake = Lake()
    with open_instance() as instance:
        inboxes = [
            inbox
            for inbox in INBOXES
            if inbox.dynamic and instance.has_dynamic_partition(inbox.dynamic, key)
        ]
        if not inboxes:
            raise click.UsageError(f"no dynamic partition is called {key!r}")
        for inbox in inboxes:
            if (drop := _drop_of(lake, inbox, key)) is not None and drop.exists():
                raise click.UsageError(f"{drop} is still there: move the drop away first")
            made = Graph(instance, lake).partitioned_by(inbox.partitions)
            for folder in built_from(lake, made, key):
                say(f"{'delete' if artifacts else 'stays'}: {escape(str(folder))}")
                if artifacts and not dry_run:
                    remove.withdraw(folder)
            # Last, so that a call cut short can be made again.
            say(f"{inbox.dynamic}: forget {escape(key)}")
            if not dry_run:
                instance.delete_dynamic_partition(str(inbox.dynamic), key)


def _drop_of(lake: Lake, inbox: Inbox, key: str) -> Path | None:
    """Where the drop of a partition lies; None for a key that no drop can have."""
    # The instance takes anything as a key, also `..` and `*`.
    if keys.refusal(key):
        return None
    return lake.inbox(inbox.folder) / (key + "".join(inbox.shape.endings[:1]))


def built_from(lake: Lake, assets: Collection[str], key: str) -> list[Path]:
    """Published folders of partition `key` of any of `assets`, as their records say."""
    if keys.refusal(key):
        return []
    found = []
    for path in sorted(lake.root.glob(f"*/*/{key}/{provenance.RECORD}")):
        record = provenance.read_record(path)
        if record.asset in assets and record.partition == key:
            found.append(path.parent)
    return found


if __name__ == "__main__":
    main()

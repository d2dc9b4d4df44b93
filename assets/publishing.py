"""Publishes the partitions of a run: reports each as a Dagster event, and pushes it to a mirror."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import dagster as dg

from assets import choices, versions, worker
from assets.checking import evaluations
from assets.checking.evaluations import failed_build
from assets.checking.rules import CHECKED, Checked, Looked, keep, seen_by
from assets.checking.verdicts import Place, Verdicts, kept
from assets.events import Problem, Target, event_metadata, problem_of
from assets.leaks import refuse_held
from assets.versions import step_output
from gristmill import mirror as mirroring
from gristmill.contract import GristmillError, NothingToBuild, in_words
from gristmill.data_root.states import BUILT
from gristmill.layout import refuse_missing_root
from gristmill.markdown import escape
from gristmill.printable import plain
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.inventory import Entry
from gristmill.publish.build import Build, Published
from gristmill.publish.publish import publish
from gristmill.run import amounts, interrupts
from gristmill.run.progress import LogLines, Progress, reporter
from gristmill.settings.tables import MirrorSettings
from resources import Lake


class Outcomes:
    """What became of the partitions of a run, for the checks.

    A build that came through does not fail because its verdict cannot be kept: the checks then
    take what became of it from its events. What a failing step cannot keep, it says once more.

    done: the partitions that were published or are current, each with its artifact.
    """

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._checked = CHECKED.get(context.asset_key)
        self._published: list[str] = []
        self.done: list[tuple[str | None, Artifact]] = []
        self._lake: Lake = context.resources.lake
        self._unkept: list[Callable[[Verdicts], object]] = []

    def published(self, key: str | None, build: Build, published: Published) -> None:
        """Say that a partition was built, or that it is current."""
        self._published.append(key or "")
        self.done.append((key, Artifact(build.folder, build.record_path)))
        if self._checked is not None:
            name, place = (
                self._checked.name,
                Place(build.record_path, published.record.data_version),
            )
            run = self._context.run.run_id
            void = self._checked.of_bytes if published.rebuilt else ()
            self._say(lambda verdicts: verdicts.published(name, key or "", place, void, run))

    @contextmanager
    def of(self, key: str | None) -> Iterator[None]:
        """Note how the build of a partition ends that does not succeed."""
        try:
            yield
        except NothingToBuild:
            if self._checked is not None:
                name = self._checked.name
                self._say(lambda verdicts: verdicts.not_failed(name, key or ""))
            raise
        except Exception as error:
            self.failed([key], error)
            raise

    def failed(self, keys: Sequence[str | None], error: Exception) -> None:
        """Say that the builds of some partitions failed."""
        if self._checked is None:
            return
        name, lake = self._checked.name, self._lake
        targets = [(key or "", Target.of(self._context, key)) for key in keys]
        said = [failed_build(name, key, problem_of(error, to), lake) for key, to in targets]
        self._say(lambda verdicts: verdicts.keep(name, BUILT, said))

    @contextmanager
    def spoken_for(self) -> Iterator[Outcomes]:
        """Speak for the checks of the run if the step fails, is interrupted, or builds nothing."""
        try:
            yield self
        except GeneratorExit:
            raise
        except BaseException:
            self._speak()
            raise
        if not self._published:  # the step has no output
            self._speak()

    def _say(self, said: Callable[[Verdicts], object]) -> None:
        """Keep a verdict; what could not be kept is said again at the end of the step."""
        if not self._unkept:
            # The checks say why it failed.
            with kept(self._lake.root, lambda _: None) as file:
                file.do(said)
                if not file.is_lost:
                    return
        self._unkept.append(said)

    def _repeat(self, verdicts: Verdicts) -> None:
        for said in self._unkept:
            said(verdicts)

    def _speak(self) -> None:
        """Do what the steps of the run's checks would have done: they are skipped."""
        context, checked = self._context, self._checked
        try:
            said = self._repeat if checked is None else self._looked(checked)
            evaluations.settle_planned(
                context.instance, self._lake, context.run.run_id, checked, said
            )
        except Exception as error:  # noqa: BLE001  the step has an outcome of its own
            context.log.warning(f"the checks do not show what this run built: {error}")

    def _looked(self, checked: Checked) -> Callable[[Verdicts], None]:
        """Look at what was published; returns what keeps the findings in any verdicts."""
        context = self._context
        selected = context.run.asset_check_selection
        chosen = [
            rule
            for rule in checked.rules.values()
            if self._published and (selected is None or checked.key(rule) in selected)
        ]
        since, seen = evaluations.start_of(context), dict[str, Looked | None]()

        def say(verdicts: Verdicts) -> None:
            self._repeat(verdicts)
            scope = checked.scope(self._lake, self._published, since, verdicts)
            for rule in chosen:
                if rule.name not in seen:
                    seen[rule.name] = seen_by(rule, scope)
                keep(rule, checked, scope, seen[rule.name])

        with kept(self._lake.root, context.log.warning) as file:
            file.do(say)
        return say


STATUS: Final = "not in the mirror"


def pushed(
    root: Path, mirror: MirrorSettings, artifacts: Sequence[Artifact], progress: Progress
) -> list[mirroring.Pushed]:
    """Push published artifacts to a mirror, and return what became of each, in their order.

    An error is what became of an artifact; nothing is raised for one of the library or of a file.
    """
    try:
        return mirroring.push(
            root, mirror.push, artifacts=artifacts, parallel=mirror.parallel, progress=progress
        )
    except (GristmillError, OSError) as error:
        titles = [Entry.of(root, artifact).title for artifact in artifacts]
        return [mirroring.Pushed(title, error=str(error)) for title in titles]


def cure(mirror: MirrorSettings, names: Sequence[str]) -> str:
    """Returns what a person does about artifacts that are not in the mirror."""
    command = shlex.join(["gristmill", "push", mirror.push, *names])
    return f"`{plain(command)}`; the next build of the partition pushes it, too"


def push_published(
    context: dg.AssetExecutionContext,
    mirror: MirrorSettings,
    done: Sequence[tuple[str | None, Artifact]],
) -> Iterator[dg.AssetObservation]:
    """Push the partitions that a step published or found current, where the mirror takes the asset.

    Yields an event for each that failed. Raises dagster.Failure at the end if an artifact is not in
    the mirror.
    """
    if not mirror.takes(context.asset_key.to_user_string()) or not done:
        return
    root = context.resources.lake.root
    work = f"{context.asset_key.to_user_string()} to the mirror"
    progress = reporter(LogLines(context.log.info), work)
    with progress.working() as lines:
        results = pushed(root, mirror, [artifact for _, artifact in done], progress)
        lines.append(_push_line(results))
    context.log.info(f"{mirror.push}: {_push_line(results)}")
    missed: dict[str, Problem] = {}
    for (key, artifact), result in zip(done, results, strict=True):
        if result.error is None:
            continue
        reason = f"published, but the push failed: {plain(result.error, _MOST_REASON)}"
        name = Entry.of(root, artifact).name
        missed[key or name] = problem = Problem(reason, "MirrorError", cure(mirror, [name]))
        yield problem.observation(context.asset_key, key, root, STATUS)
    if missed:
        if len(done) == 1:
            raise next(iter(missed.values())).failure()
        said = f"{len(missed)} of {len(done)} partitions are {STATUS}; all of them are published"
        raise _failure_of_batch(said, missed)


def _push_line(results: Sequence[mirroring.Pushed]) -> str:
    created = sum(result.created for result in results)
    failed = sum(result.error is not None for result in results)
    sent = amounts.size(sum(result.sent_bytes for result in results))
    said = f"{created} new versions, {sent} sent, {len(results) - created - failed} were there"
    return f"{said}, {failed} failed" if failed else said


BuildOf = Callable[[str | None], Build]
SampleOf = Callable[[Path], int]
Event = dg.MaterializeResult[Any] | dg.AssetMaterialization | dg.AssetObservation

# Characters of one reason, and partitions, in the event of a run of many that failed.
_MOST_REASON, _MOST_LISTED, _MOST_CURES = 900, 100, 5

NOT_BUILT = "not built"
"""`status` of the event of a partition that has nothing to build, as by the terms of a corpus."""

# A run with this tag builds unchanged artifacts too, for files that were damaged but kept
# their size and time.
REBUILD = "gristmill/rebuild"
# A run with this tag beside `REBUILD` publishes a build though it has the fingerprint of the
# published version and other contents.
REPLACE_DIFFERING = "gristmill/replace-differing"
# A run of several partitions with this tag does not fail for those that failed: the sensor that
# asked for it asks for a run of each of them, so that what was built has no failed run.
FAILS_ALONE = "gristmill/fails-alone"
# A run with this tag waits for another process that builds the same partition. Runs of the UI stop:
# they would take a place in the queue.
WAIT = "gristmill/wait"

# Many partitions in one run share the cost of its start; few partitions let the first ones
# appear soon.
BATCH = dg.BackfillPolicy.multi_run(max_partitions_per_run=100)


def publish_asset(
    context: dg.AssetExecutionContext,
    build_of: BuildOf,
    sample: SampleOf = lambda _: 0,
) -> Iterator[Event]:
    """Publish the run's partitions of one asset, and report each with its record.

    build_of: takes a partition key (None for an asset without partitions) and returns what is
        to be built.

    Yields one event for each partition. If a build raises NothingToBuild or fails, the event is an
    observation with the reason: the partition does not count as materialized. A run without a
    failure does not fail.

    Then what was published, or is current, is pushed to the mirror of `[mirror]`, if there is one.

    Raises dagster.Failure with the message of a GristmillError, and at the end of a run of
    several partitions if some of them failed; the others are published. The same for artifacts
    that are not in the mirror: they are published.
    """
    worker.freeze_imports()
    worker.sign(context)
    worker.tune_databases()
    worker.hold_databases(context.instance, context.run.run_id)

    with Outcomes(context).spoken_for() as outcomes:
        mirror = yield from _mirror(context, outcomes)
        try:
            yield from _publish_run(context, build_of, sample, outcomes)
        except dg.Failure:
            # Of a batch, some partitions came through.
            try:
                yield from push_published(context, mirror, outcomes.done)
            except dg.Failure as missed:
                context.log.error(missed.description)
            raise
        yield from push_published(context, mirror, outcomes.done)


def _mirror(
    context: dg.AssetExecutionContext, outcomes: Outcomes
) -> Generator[Event, None, MirrorSettings]:
    """Returns the mirror to push to; a wrong table or value is refused before anything is built."""
    try:
        refuse_missing_root(context.resources.lake.root)
        # All of the run's values, before the first asset reads an input.
        if refused := choices.refused_values(context.run.run_config):
            lines = "\n".join(map(plain, refused))
            raise GristmillError(f"not started, change it in the launchpad:\n{lines}")
        settings: MirrorSettings = context.resources.lake.mirror()
    except GristmillError as error:
        keys = _keys(context)
        outcomes.failed(keys, error)
        for key in keys:
            problem = problem_of(error, Target.of(context, key))
            yield problem.observation(context.asset_key, key, context.resources.lake.root)
        target = Target.of(context, keys[0] if len(keys) == 1 else None)
        raise problem_of(error, target).failure() from None
    return settings


def _keys(context: dg.AssetExecutionContext) -> list[str | None]:
    """The partitions of the run; [None] for an asset without any."""
    # A run of some partitions may also hold assets that have none.
    if context.assets_def.partitions_def is None:
        return [None]
    if context.has_partition_key_range:
        return list(context.partition_keys)
    return [context.partition_key if context.has_partition_key else None]


def _publish_run(
    context: dg.AssetExecutionContext,
    build_of: BuildOf,
    sample: SampleOf,
    outcomes: Outcomes,
) -> Iterator[Event]:
    keys = _keys(context)
    if len(keys) > 1:
        several = [key for key in keys if key is not None]
        with worker.stored_together(context.instance):
            events = yield from _publish_batch(context, several, build_of, sample, outcomes)
        if events and len(context.job_def.nodes) > 1:
            # Steps downstream in this run wait for the step's output.
            yield from step_output(context, events)
        return
    (key,) = keys
    try:
        published = _publish(context, build_of, key, outcomes)
        # Metadata of a MaterializeResult would be stored twice: in the event of the output, too.
        context.add_asset_metadata(event_metadata(published, sample), partition_key=key)
    except NothingToBuild as reason:
        yield _not_built(context, key, reason)
        return
    except Exception as error:
        problem = problem_of(error, Target.of(context, key))
        yield problem.observation(context.asset_key, key, context.resources.lake.root)
        if isinstance(in_words(error), GristmillError):
            raise problem.failure() from None
        raise
    context.log.info(_line(published))
    yield dg.MaterializeResult(data_version=dg.DataVersion(published.record.data_version))


def _publish_batch(
    context: dg.AssetExecutionContext,
    keys: list[str],
    build_of: BuildOf,
    sample: SampleOf,
    outcomes: Outcomes,
) -> Generator[Event, None, list[dg.AssetMaterialization]]:
    """Publish several partitions, and return the events of those that were."""
    events: list[dg.AssetMaterialization] = []
    failed: dict[str, Problem] = {}
    tags_of = versions.tagger(context, keys)
    for key in _with_inputs(context, keys):
        try:
            published = _publish(context, build_of, key, outcomes)
            # The line is no message of the log: it would cost as much as the event.
            event = dg.AssetMaterialization(
                asset_key=context.asset_key,
                description=escape(_line(published)),
                partition=key,
                metadata=event_metadata(published, sample),
                tags=tags_of(key, published.record.data_version),
            )
        except NothingToBuild as nothing:
            yield _not_built(context, key, nothing)
            continue
        except Exception as error:  # noqa: BLE001  each partition fails alone; all are raised below
            failed[key] = problem = problem_of(error, Target.of(context, key))
            context.log.error("\n".join(filter(None, (f"{key}: {problem.text}", problem.trace))))
            yield problem.observation(context.asset_key, key, context.resources.lake.root)
            continue
        events.append(event)
        yield event
    if failed:
        said = f"{len(failed)} of {len(keys)} partitions failed, the others are published"
        failure = _failure_of_batch(said, failed)
        if context.run.tags.get(FAILS_ALONE) != "true":
            raise failure
        context.log.warning(f"{failure.description}\nEach of them gets a run of its own.")
    return events


def _with_inputs(context: dg.AssetExecutionContext, keys: list[str]) -> list[str]:
    """The partitions for which this run has built what the asset is built from."""
    of_run = context.job_def.asset_layer
    own = of_run.asset_graph.get(context.asset_key)
    inputs = [
        parent
        for parent in own.parent_keys & of_run.selected_asset_keys
        if of_run.asset_graph.get(parent).partitions_def == own.partitions_def
    ]
    if not inputs:
        return keys
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    events = [
        entry.asset_materialization
        for entry in context.instance.all_logs(context.run.run_id, of_type=kind)
    ]
    built = {(event.asset_key, event.partition) for event in events if event is not None}
    return [key for key in keys if all((parent, key) in built for parent in inputs)]


def _failure_of_batch(said: str, failed: Mapping[str, Problem]) -> dg.Failure:
    listed = list(failed.items())[:_MOST_LISTED]
    lines = [f"{key}: {plain(problem.first_line, _MOST_REASON)}" for key, problem in listed]
    # Partitions that fail by the same rule share the line that says what to do.
    cures = dict.fromkeys(f"{key}: {problem.cure}" for key, problem in listed if problem.cure)
    if cures:
        lines += ["What to do:", *list(cures)[:_MOST_CURES]]
    reasons = {key: plain(problem.reason, _MOST_REASON) for key, problem in listed}
    return dg.Failure(
        "\n".join([f"{said}:", *lines]),
        metadata={"failed": dg.MetadataValue.json(reasons)},
        allow_retries=False,
    )


def _publish(
    context: dg.AssetExecutionContext, build_of: BuildOf, key: str | None, outcomes: Outcomes
) -> Published:
    """Publish a partition; its reports go to the terminal of this process, else to the log."""
    interrupts.raise_again()
    tags = context.run.tags
    work = " ".join(filter(None, (context.asset_key.to_user_string(), key)))
    progress = reporter(LogLines(context.log.info), work)
    engine = context.resources.lake.engine
    with progress.working() as lines, outcomes.of(key), engine():
        build = build_of(key)
        rebuild = tags.get(REBUILD) == "true"
        refuse_held(context.resources.lake, build, rebuild=rebuild)
        published = publish(
            build,
            rebuild=rebuild,
            replace_differing=tags.get(REPLACE_DIFFERING) == "true",
            wait=tags.get(WAIT) == "true",
            progress=progress,
        )
        lines.append("built" if published.rebuilt else "unchanged")
        outcomes.published(key, build, published)
    return published


def _line(published: Published) -> str:
    """What was built, in one line: bytes, seconds, where it is, and its account with the rows."""
    record = published.record
    said = f"{record.artifact}: {amounts.size(sum(output.bytes for output in record.outputs))}"
    if published.rebuilt:
        said += f", built in {amounts.duration(record.seconds)}"
    notes = "".join(
        f"; {note}" for note in [published.account, published.not_checked, *published.notes] if note
    )
    return plain(f"{said}, in {published.folder}{notes}")


def _not_built(
    context: dg.AssetExecutionContext, key: str | None, reason: NothingToBuild
) -> dg.AssetObservation:
    """Report to the log and to the asset's page why a partition was not built."""
    text = plain(str(reason))
    context.log.warning(f"{key}: not built: {text}" if key else f"not built: {text}")
    return dg.AssetObservation(
        asset_key=context.asset_key,
        partition=key,
        description=f"not built: {escape(text)}",  # the UI shows it as Markdown
        metadata={"status": NOT_BUILT, "reason": text},
    )

"""Pushes what a build published to the mirror that `[mirror]` of gristmill.toml names.

What was published stays published if the push fails. An artifact that is current is looked at, too,
so that the next build of a partition makes up for a push that failed. Source:
docs/mirror.md#after-each-build.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import dagster as dg

from assets.failures import Problem
from gristmill import mirror as mirroring  # its modules are imported by the first push
from gristmill.contract import GristmillError
from gristmill.printable import plain
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.inventory import Entry
from gristmill.run import amounts
from gristmill.run.progress import LogLines, Progress, reporter
from gristmill.settings.root_tables import MirrorSettings

STATUS: Final = "not in the mirror"
_MOST_REASON: Final = 900
_MOST_LISTED: Final = 100


def pushed(
    root: Path, mirror: MirrorSettings, artifacts: Sequence[Artifact], progress: Progress
) -> list[mirroring.Pushed]:
    """Push artifacts of a data root, and return what became of each, in their order.

    root: the data root.
    mirror: where to, as `Lake.mirror` returns it; not empty.
    artifacts: published ones.
    progress: gets the stage "push" in bytes.

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
        lines.append(_line(results))
    context.log.info(f"{mirror.push}: {_line(results)}")
    missed: dict[str, Problem] = {}
    for (key, artifact), result in zip(done, results, strict=True):
        if result.error is None:
            continue
        reason = f"published, but the push failed: {plain(result.error, _MOST_REASON)}"
        name = Entry.of(root, artifact).name
        missed[key or name] = problem = Problem(reason, "MirrorError", cure(mirror, [name]))
        yield problem.observation(context.asset_key, key, root, STATUS)
    if missed:
        raise _failure(missed, len(done))


def _line(results: Sequence[mirroring.Pushed]) -> str:
    created = sum(result.created for result in results)
    failed = sum(result.error is not None for result in results)
    sent = amounts.size(sum(result.sent_bytes for result in results))
    said = f"{created} new versions, {sent} sent, {len(results) - created - failed} were there"
    return f"{said}, {failed} failed" if failed else said


def _failure(missed: dict[str, Problem], count: int) -> dg.Failure:
    if count == 1:
        return next(iter(missed.values())).failure()
    listed = list(missed.items())[:_MOST_LISTED]
    lines = [f"{key}: {problem.first_line}" for key, problem in listed]
    return dg.Failure(
        f"{len(missed)} of {count} partitions are {STATUS}; all of them are published:\n"
        + "\n".join([*lines, "What to do:", f"{listed[0][0]}: {listed[0][1].cure}"]),
        metadata={"failed": dg.MetadataValue.json({key: each.reason for key, each in listed})},
        allow_retries=False,
    )

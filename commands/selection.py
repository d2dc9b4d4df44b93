"""One call of `gristmill materialize`: what it builds of the chosen assets, and what it says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import dagster as dg
from rich.markup import escape

from assets import choices, leaks
from assets.inbox import Inbox
from commands import outcomes as table
from commands.checkout import open_instance, say, settings_of, shown
from commands.graph import (
    INBOXES,
    Failures,
    Graph,
    Plan,
    Standing,
    first_and_last,
    register,
    strangers,
)
from commands.outcomes import BUILDS, MAY_FOLLOW, TO_BUILD, Answer, Call, Outcome
from gristmill.asset import declared
from gristmill.contract import GristmillError, NothingToBuild
from gristmill.inbox import READY, REFUSED
from gristmill.inbox import Standing as Drop
from gristmill.inbox.listing import FOLDER
from gristmill.leaks.texts import ASSETS
from gristmill.printable import plain
from gristmill.provenance import read_record, record_path, unusual
from gristmill.provenance.find_artifacts import Artifact, artifacts
from gristmill.publish.publish import NOT_PUBLISHED
from gristmill.run.progress import SILENT, Progress, shown_on_stderr
from gristmill.untrusted.files import read_file
from resources import Lake

_MOST_NAMED: Final = 5
_LIST_BYTES: Final = 1 << 24
_MOST_LOOKS: Final = 3
_MOST_LOOKED_AT: Final = 1000
"""Artifacts, at some milliseconds each."""
_PAGE: Final = "its page is not current"


def answer_of(call: Call) -> Answer:
    """Build what a call asks for; returns what it says. What has nothing to do leaves a note."""
    partitions = call.partitions
    if call.listed is not None:
        partitions += tuple(_listed(call.listed, call.selection))
    lake, stamp = Lake(), call.stamp()
    with open_instance() as instance:
        build = _Build(instance, lake, call.selection, partitions, call.words)
        build.refuse_settings()
        with shown_on_stderr() as progress:
            if call.dry_run:
                build.look(call.rebuild, progress)
            else:
                build.run(call.rebuild, call.replace_differing, call.wait, progress)
        answer = build.answer(call)
        for _ in range(_MOST_LOOKS):
            if build.is_idle and stamp is not None and stamp == call.stamp():
                call.keep(build.answer(call), stamp)
                break
            is_wanted = build.is_idle or not call.selection
            if answer.is_failure or not is_wanted or len(build.outcomes) > _MOST_LOOKED_AT:
                break
            # So that the next call has an answer, too. The first look after a build makes Dagster
            # note the states of partitions.
            if (stamp := call.stamp()) is None:
                break
            build = _Build(instance, lake, call.selection, (), ())
            build.look(False, SILENT)
    return answer


class _Build:
    """One call of the command: the assets in order, and the outcome of each partition."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        lake: Lake,
        selection: Sequence[str],
        partitions: Sequence[str],
        words: Sequence[str],
    ) -> None:
        self._instance, self._lake, self._partitions = instance, lake, partitions
        self._idle_drops: dict[str, list[Drop]] = {}
        self._graph = Graph(instance, lake)
        self._assets = self._graph.select(selection)
        # Other inboxes add no partition that these assets have.
        self._above = _inboxes_of(self._graph.with_ancestors(self._assets))
        self._register(self._above)
        self._graph.add_asked(self._assets, partitions)
        self._values = settings_of(self._assets[0].to_user_string(), words) if words else {}
        for asset in self._assets:
            self._check_keys(asset)  # a wrong key stops before a build
        self.outcomes: list[Outcome] = []
        self._has_work = False
        self.inboxes = _inboxes_of(self._assets)
        self._everything = not selection

    def _check_keys(self, asset: dg.AssetKey) -> None:
        try:
            self._graph.keys(asset, self._partitions)
        except click.UsageError as error:
            if self._graph.partitions(asset) is None:
                raise
            unknown = set(self._partitions) - set(self._graph.known(asset))
            lines = {
                found.key: f"{asset.to_user_string()} has no partition {found.key!r} yet: "
                f"{found.state} {_line(inbox.folder, found)}"
                for inbox in INBOXES
                if any(target.key == asset for target in inbox.targets)
                for found in self._idle_drops[inbox.folder]
                if found.key in unknown
            }
            if unknown - lines.keys():
                raise
            raise GristmillError("\n".join(lines.values())) from error

    def _keys(self, asset: dg.AssetKey) -> list[str | None]:
        """The partitions to build; none of an asset that `--all` would build for nobody."""
        keys = self._graph.keys(asset, self._partitions)
        is_idle = self._everything and keys == [None] and not self._graph.is_asked(asset)
        return [] if is_idle else keys

    def refuse_settings(self) -> None:
        """Raise GristmillError if `gristmill.toml` has a wrong table of the chosen assets."""
        names = [asset.to_user_string() for asset in self._assets]
        if refused := choices.refused_files(self._lake, names):
            raise GristmillError("\n".join(refused))

    def run(self, rebuild: bool, replace_differing: bool, wait: bool, progress: Progress) -> None:
        """Build the chosen assets, each after those that it is built from."""
        failures = Failures(self._graph)
        standing = Standing(self._instance, self._lake, self._graph)
        for number, asset in enumerate(self._assets, 1):
            keys = self._keys(asset)
            # What stands is compared with files alone: with given values a run finds out.
            is_open = rebuild or bool(self._values)
            plan = Plan(together=keys) if is_open else standing.plan(asset, keys, progress)
            found = plan.standing
            self._has_work |= bool(plan.together or plan.alone)
            name = asset.to_user_string()
            again = [Outcome(name, key or "", BUILDS, reason=why) for key, why in plan.why.items()]
            for line in table.reasons(each for each in again if each.reason != NOT_PUBLISHED):
                say(line)
            for key, error in plan.alone.items():
                if waiting := failures.follows(asset, key, error):
                    found[key] = waiting
            left = [(key, error) for key, error in plan.alone.items() if key not in found]
            idle = [key for key, error in left if isinstance(error, NothingToBuild)]
            alone = [key for key, error in left if not isinstance(error, NothingToBuild)]
            for some, together in ((plan.together, True), (idle, True), (alone, False)):
                outcomes = self._graph.materialize(
                    asset,
                    some,
                    together=together,
                    rebuild=rebuild,
                    replace_differing=replace_differing,
                    wait=wait,
                    values=self._values,
                )
                for key, outcome in zip(self._graph.in_order(asset, some), outcomes, strict=True):
                    found[key] = failures.judged(asset, outcome)
            self.outcomes += (found[key] for key in keys)
            if (plan.together or left) and number < len(self._assets):
                # A drop may depend on artifacts that were just built, as a pool on its packs. What
                # arrives between two assets of its inbox would not be built by the first.
                begun = _inboxes_of(self._assets[:number])
                self._register([each for each in self._above if each not in begun])
                self._graph.look_again()

    def look(self, rebuild: bool, progress: Progress) -> None:
        """Find what `run` would build and why, with what follows from it."""
        standing = Standing(self._instance, self._lake, self._graph)
        built: dict[dg.AssetKey, set[str | None]] = {}
        for asset in self._assets:
            name, keys = asset.to_user_string(), self._keys(asset)
            plan = standing.plan(asset, keys, progress)
            found = plan.standing
            self._has_work |= bool(plan.together or plan.alone)
            for key in plan.together:
                found[key] = Outcome(name, key or "", TO_BUILD, reason=plan.why.get(key, _PAGE))
            for key, error in plan.alone.items():
                waits = isinstance(error, NothingToBuild)
                status = "not built" if waits else "failed"
                found[key] = Outcome(name, key or "", status, reason=plain(str(error)))
            inputs = self._graph.inputs(asset)
            for parent in sorted(self._graph.parents(asset) & built.keys()):
                follows = built[parent] if parent in inputs else keys if built[parent] else ()
                reason = f"{parent.to_user_string()} is built before it"
                for key in [key for key in follows if key in found]:
                    if found[key].status != TO_BUILD:  # nobody knows before its input is there
                        found[key] = Outcome(name, key or "", MAY_FOLLOW, reason=reason)
            if rebuild:
                for key in [key for key in keys if found[key].status in ("unchanged", MAY_FOLLOW)]:
                    found[key] = Outcome(name, key or "", TO_BUILD, reason="--rebuild")
            built[asset] = {key for key in keys if found[key].status in (TO_BUILD, MAY_FOLLOW)}
            self.outcomes += (found[key] for key in keys)

    @property
    def is_idle(self) -> bool:
        """Whether an equal call would find nothing to do, either, and say the same.

        Drops that are arriving, unread or refused may become ready without a change of a file.
        """
        idle = (drop for drops in self._idle_drops.values() for drop in drops)
        is_known = all(drop.state == READY for drop in idle) and self._graph.is_whole
        return is_known and not self._has_work

    def answer(self, call: Call) -> Answer:
        """What the call says of all this."""
        failing = ("failed", "not built") if self._partitions else ("failed",)
        is_failure = any(outcome.status in failing for outcome in self.outcomes) or any(
            found.state == REFUSED for _, found in self.idle_drops()
        )
        lines = list(self._lines(call))
        return Answer(self.outcomes, lines, is_failure, is_named=bool(self._partitions))

    def _lines(self, call: Call) -> Iterator[str]:
        """What follows the table: what is unusual, and what is not built."""
        for note in _notes(self._lake, self.outcomes, bool(self._partitions)):
            yield f"[yellow]note[/] {shown(note)}"
        for note in _leaks(self._lake, self.outcomes, bool(self._partitions)):
            yield f"[yellow]note[/] {shown(note)}"
        # How the settings that were given for this call stay.
        for note in _kept_by(self._lake, self.outcomes) if call.words else ():
            yield f"note: {shown(note)}"
        for line in strangers(self._lake) if self._everything else ():
            yield f"[yellow]passed over[/] {shown(line)}"
        for inbox_name, found in self.idle_drops():
            colour = "red" if found.state == REFUSED else "yellow"
            yield f"[{colour}]{found.state}[/] {shown(_line(inbox_name, found))}"
        if self.has_no_drops():
            named = " or ".join(str(self._lake.inbox(inbox.folder)) for inbox in self.inboxes)
            yield (
                f"there is no drop: copy one into {escape(named)}, or run "
                f"`gristmill samples {escape(str(self._lake.root))}` to write sample drops"
            )
        elif without := self.without_drop():
            yield f"not built, since they have no drop: {escape('; '.join(without))}"

    def without_drop(self) -> list[str]:
        """The first assets of inboxes that have no drop, with the partitions that wait for one."""
        lines: dict[str, str] = {}
        for inbox in self.inboxes if not self._partitions else ():
            for asset in (made.key for made in inbox.targets if made.key in self._assets):
                partitions = str(self._graph.partitions(asset))
                built = set(self._graph.keys(asset, ()))
                missing = [
                    key
                    for key in self._graph.known(asset)
                    if key not in built and self._graph.is_asked(asset, key)
                ]
                is_idle = not built and not self._idle_drops[inbox.folder]
                if partitions not in lines and (missing or is_idle):
                    named = first_and_last(missing, most=_MOST_NAMED) if missing else ""
                    lines[partitions] = f"{asset.to_user_string()} {named}".rstrip()
        return list(lines.values())

    def has_no_drops(self) -> bool:
        """Whether the chosen assets are built from drops, and none is there, even an idle one."""
        return (
            bool(self.inboxes)
            and not self._partitions
            and not any(self._idle_drops[inbox.folder] for inbox in self.inboxes)
            and not any(
                self._graph.keys(asset.key, ()) for inbox in self.inboxes for asset in inbox.targets
            )
        )

    def idle_drops(self) -> Iterator[tuple[str, Drop]]:
        """Yields the drops of the chosen assets and partitions that nothing is built from."""
        of_targets = {
            (inbox.folder, outcome.partition)
            for inbox in self.inboxes
            for outcome in self.outcomes
            if outcome.reason
            and any(made.key.to_user_string() == outcome.asset for made in inbox.targets)
        }
        for inbox in INBOXES if self._everything else self.inboxes:
            for found in self._idle_drops[inbox.folder]:
                is_asked = not self._partitions or found.key in self._partitions
                # The target of a drop that is not built has the reason already.
                if is_asked and (inbox.folder, found.key) not in of_targets:
                    yield inbox.folder, found

    def _register(self, inboxes: Sequence[Inbox]) -> None:
        for inbox in inboxes:
            self._idle_drops[inbox.folder] = register(self._instance, self._lake, inbox)


def _listed(file: Path, selection: Sequence[str]) -> list[str]:
    """The partitions in a file. Raises BadInput for a line that names none."""
    of_assets = (
        inbox.shape
        for inbox in INBOXES
        if any(made.key.to_user_string() in selection for made in inbox.targets)
    )
    octets = read_file(file, root=file.parent, most=_LIST_BYTES)
    return next(of_assets, FOLDER).keys_in(octets.decode("utf-8", "replace"), str(file))


def _notes(lake: Lake, outcomes: Sequence[Outcome], is_named: bool) -> Iterator[str]:
    """What is unusual in what was built, or, if a person named it, in what stands."""
    wanted = [each for each in outcomes if each.status == "built" or is_named]
    across = unusual.AcrossPartitions(())
    if any(asset.across for each in wanted if (asset := declared().get(each.asset))):
        across = unusual.AcrossPartitions(artifacts(lake.root))
    for outcome, path in _records(wanted):
        item = Artifact(Path(outcome.place), path)
        is_read = outcome.status == "built"
        said = unusual.lines(item, read_record(path), across.of(outcome.asset), is_read=is_read)
        for line in said[:_MOST_NAMED]:
            yield f"{outcome.target}: {line}"
        if len(said) > _MOST_NAMED:
            yield f"{outcome.target}: {len(said) - _MOST_NAMED} more: `gristmill verify` lists them"


def _leaks(lake: Lake, outcomes: Sequence[Outcome], is_named: bool) -> Iterator[str]:
    """Which texts that were built, or that a person named, hold questions of evaluation sets."""
    wanted = [each for each in outcomes if each.status == "built" or is_named]
    for asset in ASSETS:
        said = dict(leaks.said(lake, asset)) if any(each.asset == asset for each in wanted) else {}
        for each in wanted:
            if each.asset == asset and each.partition in said:
                yield f"{each.target}: {said[each.partition]}"


def _records(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, Path]]:
    for outcome in outcomes:
        for shared in (False, True) if outcome.place else ():
            path = record_path(Path(outcome.place), outcome.partition or None, shared=shared)
            if path.is_file():
                yield outcome, path


def _kept_by(lake: Lake, outcomes: Sequence[Outcome]) -> list[str]:
    """How the settings that were given for this call stay, one line for each field and file."""
    lines = {}
    for _, path in _records(outcomes):
        notes = choices.config_notes(lake, read_record(path))
        lines.update(dict.fromkeys(note.found for note in notes))
    return list(lines)


def _line(inbox: str, found: Drop) -> str:
    """A drop and the reason why nothing is built from it."""
    return f"{inbox}/{found.key}: {found.reason}" if found.key else found.reason


def _inboxes_of(assets: Collection[dg.AssetKey]) -> list[Inbox]:
    return [inbox for inbox in INBOXES if any(target.key in assets for target in inbox.targets)]

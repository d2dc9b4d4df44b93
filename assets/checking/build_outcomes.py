"""What became of the partitions that a run builds, and what its checks say if it skips them.

A run that fails, or that builds nothing, does not reach the steps of its checks, and Dagster would
show every check that it planned as failed or skipped. So the asset's own step looks at the
partitions that it did publish, and reports the states of the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from assets.checking import evaluations
from assets.checking.evaluations import failed_build
from assets.checking.rules import CHECKED, Checked, Looked, keep, seen_by
from assets.checking.verdicts import Place, Verdicts, kept
from assets.events import Target, problem_of
from gristmill.contract import NothingToBuild
from gristmill.data_root.states import BUILT
from gristmill.provenance.find_artifacts import Artifact
from gristmill.publish.build import Build, Published
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

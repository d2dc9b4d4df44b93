"""What became of the partitions that a run builds, and what its checks say if it skips them.

A run that fails, or that leaves a partition unbuilt, does not reach the steps of its checks, and
Dagster would show every check that it planned as failed or skipped. So the asset's own step looks
at the partitions that it did publish, and reports the states of the checks. See also
`runs.py`: how states are reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from assets.checking import rules, runs
from assets.checking.checked import CHECKED
from assets.checking.verdicts import Place, opened
from assets.failures import Target, problem_of
from gristmill.contract import NothingToBuild
from gristmill.printable import plain
from gristmill.publish.build import Build, Published
from resources import Lake


class Outcomes:
    """What became of the partitions of a run, for the checks.

    context: of the asset's step.
    """

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._checked = CHECKED.get(context.asset_key)
        self._published: list[str] = []
        self._has_unbuilt = False
        self._lake: Lake = context.resources.lake

    def published(self, key: str | None, build: Build, published: Published) -> None:
        """Say that a partition was built, or that it is current."""
        self._published.append(key or "")
        if self._checked is not None:
            with opened(self._lake.root) as verdicts:
                place = Place(build.record_path, published.record.data_version)
                void = self._checked.of_bytes if published.rebuilt else ()
                verdicts.published(self._checked.name, key or "", place, void)

    @contextmanager
    def of(self, key: str | None) -> Iterator[None]:
        """Note how the build of a partition ends that does not succeed.

        key: of the partition; None for an asset without partitions.
        """
        try:
            yield
        except NothingToBuild:
            self._has_unbuilt = True
            if self._checked is not None:
                with opened(self._lake.root) as verdicts:
                    verdicts.not_failed(self._checked.name, key or "")
            raise
        except Exception as error:
            self._failed(key, error)
            raise

    @contextmanager
    def spoken_for(self) -> Iterator[Outcomes]:
        """Speak for the checks of the run if the step fails, is interrupted, or has no output."""
        try:
            yield self
        except GeneratorExit:
            raise
        except BaseException:
            self._speak()
            raise
        if self._has_unbuilt:
            self._speak()

    def _speak(self) -> None:
        """Do what the steps of the run's checks would have done: they are skipped."""
        context, checked = self._context, self._checked
        selected = context.run.asset_check_selection
        if checked is not None and self._published:
            with opened(self._lake.root) as verdicts:
                since = runs.start_of(context)
                scope = checked.scope(self._lake, self._published, since, verdicts)
                for rule in checked.rules.values():
                    if selected is None or checked.key(rule) in selected:
                        runs.look(rule, checked, scope)
        runs.settle_planned(context.instance, self._lake, context.run.run_id, checked)

    def _failed(self, key: str | None, error: Exception) -> None:
        if self._checked is None:
            return
        problem = problem_of(error, Target.of(self._context, key)).below(self._lake.root)
        lines = [line for line in problem.reason.splitlines() if line.strip()][:3]
        cure = problem.cure or (
            "mend what the problem names, then build again: "
            f"{rules.command(self._checked.name, key or '')}"
        )
        with opened(self._lake.root) as verdicts:
            text = plain("\n".join(lines), rules.LONGEST_PROBLEM)
            verdicts.failed(self._checked.name, key or "", text, cure)

"""Why a partition was not built: the reason first, then what to do, then where it happened."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import dagster as dg

from gristmill import families
from gristmill.contract import BadInput, GristmillError, in_words
from gristmill.inbox.hub import HubError
from gristmill.keys import refusal
from gristmill.markdown import escape
from gristmill.printable import command, plain
from gristmill.publish.build import LawsBroken
from gristmill.run.locks import Busy
from gristmill.settings.tables import FILE

_MOST_REASON, _MOST_TRACE = 2000, 10_000


@dataclass(frozen=True)
class Target:
    """One partition of an asset.

    partition: its key, None for an asset without partitions.
    from_drop: whether the partition is a drop, which a person can take away.
    """

    asset: str
    partition: str | None
    from_drop: bool = False

    @classmethod
    def of(cls, context: dg.AssetExecutionContext, partition: str | None) -> Target:
        """Returns a partition of the asset whose step runs.

        context: of the step.
        partition: its key, None for an asset without partitions.
        """
        partitions = context.assets_def.partitions_def
        name = getattr(partitions, "name", None)
        parts = {s.partitions for each in families.catalogs() for s in each.sources if s.several}
        from_drop = isinstance(partitions, dg.DynamicPartitionsDefinition) and name not in parts
        return cls(context.asset_key.to_user_string(), partition, from_drop)

    def choice(self, name: str, value: str) -> str:
        """The line of gristmill.toml that chooses a value; empty if the asset has no such field."""
        table = families.tables().get(self.asset)
        if table is None or name not in {spec.name for spec in fields(table.config)}:
            return ""
        return f'set `{name} = "{value}"` in the table `{table.header}` of gristmill.toml'


@dataclass(frozen=True)
class Problem:
    """Why a partition was not built.

    trace: the stack trace of an error that the library does not expect, else empty.
    """

    reason: str
    error: str
    cure: str = ""
    trace: str = ""

    @property
    def text(self) -> str:
        """The reason, and below it what to do."""
        return f"{self.reason}\nWhat to do: {self.cure}" if self.cure else self.reason

    @property
    def first_line(self) -> str:
        """The reason in one line."""
        return self.reason.split("\n", 1)[0]

    def below(self, root: Path) -> Problem:
        """Returns the same problem with paths relative to the data root, as pages show them.

        root: the data root.
        """
        prefix = f"{plain(str(root))}/"
        return replace(
            self, reason=self.reason.replace(prefix, ""), cure=self.cure.replace(prefix, "")
        )

    def failure(self) -> dg.Failure:
        """Returns the failure of the step; raise it `from None`, since the cause adds nothing."""
        metadata = {"error": self.error, **({"cure": self.cure} if self.cure else {})}
        return dg.Failure(self.text, metadata=metadata, allow_retries=False)

    def observation(
        self, asset: dg.AssetKey, partition: str | None, root: Path, status: str = "failed"
    ) -> dg.AssetObservation:
        """Returns the event that shows the reason on the page of the partition.

        partition: its key, None for an asset without partitions.
        root: the data root. The description has paths relative to it, the metadata whole ones.
        status: what failed; default "failed": the build.
        """
        below = self.below(root)
        shown = f"{status}: {escape(below.reason)}"  # the UI shows it as Markdown
        if self.cure:
            shown += f"\n\nWhat to do: {below.cure}"
        return dg.AssetObservation(
            asset_key=asset,
            partition=partition,
            description=shown,
            metadata={
                "status": status,
                "reason": self.reason,
                "error": self.error,
                **({"cure": self.cure} if self.cure else {}),
            },
        )


def problem_of(error: Exception, target: Target) -> Problem:
    """Returns why a target was not built."""
    error = in_words(error)
    name = type(error).__name__
    if isinstance(error, GristmillError):
        return Problem(plain(str(error), _MOST_REASON), name, _cure(error, target))
    reason = plain(f"{name}: {error}", _MOST_REASON)
    trace = "".join(traceback.format_exception(error))
    # The end of a trace says more than its begin.
    return Problem(reason, name, _cure(error, target), plain(trace[-_MOST_TRACE:], _MOST_TRACE))


def _cure(error: Exception, target: Target) -> str:
    for kind, cure in _CURES:
        if isinstance(error, kind):
            return cure(error, target)
    return ""


def _of_bad_input(error: Exception, target: Target) -> str:
    if isinstance(error, BadInput) and Path(error.file).name == FILE:
        return "correct this file, then build again"
    ways = ["correct the file and build again"]
    if choice := target.choice("on_error", "quarantine"):
        ways.append(f"to build without the part that breaks the rule, {choice}")
    if target.from_drop and target.partition and not refusal(target.partition):
        ways.append(
            f"to give the drop up, remove it and run `{command('retire', target.partition)}`"
        )
    return "; ".join(ways)


def _of_broken_laws(error: Exception, target: Target) -> str:
    if choice := target.choice("game_laws", "warn"):
        return f"correct the drop; to publish it although it breaks rules of the game, {choice}"
    return (
        "correct the input if it breaks the rule; if it does not, the builder is wrong: report "
        "these lines"
    )


def _of_busy(error: Exception, target: Target) -> str:
    return (
        "wait until that build ends, then build again; if its run hangs, end the process and run "
        "`gristmill prune`"
    )


def _of_download(error: Exception, target: Target) -> str:
    return "build again later: it goes on with the bytes that are here"


def _of_permissions(error: Exception, target: Target) -> str:
    return "let the user who builds read and write this file or folder, then build again"


def _of_bug(error: Exception, target: Target) -> str:
    return "gristmill does not expect this error: report it with the stack trace of the run's log"


_CURES: Final[tuple[tuple[type[Exception], Callable[[Exception, Target], str]], ...]] = (
    (BadInput, _of_bad_input),
    (LawsBroken, _of_broken_laws),
    (Busy, _of_busy),
    (HubError, _of_download),
    # The text of any other error of the library says what to do.
    (GristmillError, lambda error, target: ""),
    (PermissionError, _of_permissions),
    (Exception, _of_bug),
)
"""What to do by the class of an error; the first class that fits counts."""

"""`gristmill materialize`: build assets in this terminal, as the UI's buttons do.

A call that finds nothing to do keeps its answer. While all that it depends on is as it was, an
equal call gives that answer without Dagster, whose import takes longer than all else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from commands import checkout, instance
from commands import outcomes as table
from commands.checkout import NO_WAIT, SET, CheckoutCommand, say
from commands.outcomes import Outcome
from gristmill import standing

_INDEX: Final = "history/runs/index.db"
"""What the instance says of partitions, checks and ends of runs is in this database."""
_CODE: Final = ("assets", "commands", "resources", "sensors", "definitions.py")


@click.command(cls=CheckoutCommand)
@click.argument("selection", nargs=-1, metavar="[ASSET]...")
@click.option("--partition", "partitions", multiple=True, help="Only this partition; repeatable.")
@click.option(
    "--list",
    "listed",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="Only the partitions in this file: one a line, or a link to its drop.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Every asset, every partition that has a drop."
)
@click.option("--rebuild", is_flag=True, help="Build unchanged artifacts, too.")
@click.option(
    "--replace-differing",
    is_flag=True,
    help="With --rebuild: publish contents that differ from the published ones, though inputs, "
    "config and code are the same. The record names the version that was replaced.",
)
@click.option("--dry-run", is_flag=True, help="Build nothing; say what would be built, and why.")
@click.option("--set", "words", multiple=True, metavar="FIELD=VALUE", help=SET)
@click.option("--no-wait", is_flag=True, help=NO_WAIT)
@click.pass_obj
def materialize(
    started_in: Path,
    selection: tuple[str, ...],
    partitions: tuple[str, ...],
    listed: Path | None,
    everything: bool,
    rebuild: bool,
    replace_differing: bool,
    dry_run: bool,
    words: tuple[str, ...],
    no_wait: bool,
) -> None:
    """Build assets, as in `macroxue/pack --partition d6_v1`, or `--all`.

    First, the drops in the inboxes become partitions. What is current needs no run. The command
    ends with a list of what was built and where, a line for each drop of these assets from which
    nothing is built, and with status 1 if a build or a check failed, if a drop is refused, or if a
    partition that was named is not built.
    """
    for is_wrong, rule in (
        (bool(selection) == everything, "give either the names of assets, or --all"),
        (partitions and everything, "--partition goes with the name of an asset, not with --all"),
        (listed and everything, "--list goes with the name of an asset, not with --all"),
        (replace_differing and not rebuild, "--replace-differing goes with --rebuild"),
        (words and len(selection) != 1, "--set goes with the name of one asset"),
        (words and dry_run, "--dry-run says what is built without --set: give one of them"),
    ):
        if is_wrong:
            raise click.UsageError(rule)
    started = time.monotonic()
    call = Call(
        selection, partitions, listed, words, rebuild, replace_differing, dry_run, not no_wait
    )
    if (answer := call.standing_answer()) is None:
        from commands.selection import answer_of

        answer = answer_of(call)
    if answer.outcomes:
        seconds = time.monotonic() - started
        table.show(answer.outcomes, seconds, started_in, named=answer.is_named)
    for line in answer.lines:
        say(line)
    if answer.is_failure:
        sys.exit(1)


@dataclass(frozen=True)
class Answer:
    """What a call says at its end.

    lines: what follows the table, as rich's markup.
    is_failure: whether the call ends with status 1. is_named: whether a person named partitions.
    """

    outcomes: Sequence[Outcome]
    lines: Sequence[str]
    is_failure: bool = False
    is_named: bool = False


@dataclass(frozen=True)
class Call:
    """The words of one call of the command; without `selection` it is about every asset."""

    selection: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    listed: Path | None = None
    words: tuple[str, ...] = ()
    rebuild: bool = False
    replace_differing: bool = False
    dry_run: bool = False
    wait: bool = True

    @property
    def has_note(self) -> bool:
        """Whether the answer depends on nothing but the assets and what a stamp stands for."""
        others = (self.partitions, self.listed, self.words, self.rebuild, self.dry_run)
        return not any(others)

    def stamp(self) -> str | None:
        """What the answer depends on, now; None where nobody can say all of it."""
        if not self.has_note:
            return None
        home = instance.dagster_home()
        if (history := instance.history_that_opens(checkout.CHECKOUT, home)) is None:
            return None
        files = (history / _INDEX, history / f"{_INDEX}-wal")
        code = (checkout.CHECKOUT / name for name in _CODE)
        return standing.stamp(checkout.root_of_call(), (self.selection, history), (*code, *files))

    def standing_answer(self) -> Answer | None:
        """The answer of an equal call before, where all that it depends on is as it was.

        A process that has imported Dagster saves nothing, and may have changed its code.
        """
        if "dagster" in sys.modules or (stamp := self.stamp()) is None:
            return None
        if (kept := standing.kept(self._note(), stamp)) is None:
            return None
        return Answer([Outcome(**each) for each in kept["outcomes"]], kept["lines"])

    def keep(self, answer: Answer, stamp: str) -> None:
        """Keep an answer for the next call; stamp: from before it was found."""
        outcomes = [asdict(each) for each in answer.outcomes]
        standing.keep(self._note(), stamp, {"outcomes": outcomes, "lines": answer.lines})

    def _note(self) -> Path:
        state = instance.state_folder(checkout.CHECKOUT, instance.dagster_home())
        return standing.note_of(state, (str(checkout.root_of_call()), self.selection))

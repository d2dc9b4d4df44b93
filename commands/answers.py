"""What one call of `gristmill materialize` asks, and what it says.

A call that finds nothing to do keeps its answer. While all that it depends on is as it was, an
equal call gives that answer without Dagster.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from commands import checkout, instance
from commands.outcomes import Outcome
from gristmill import standing
from gristmill.layout import root_of

_INDEX: Final = "history/runs/index.db"
"""What the instance says of partitions, checks and ends of runs is in this database."""
_CODE: Final = ("assets", "commands", "resources", "sensors", "definitions.py")


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

    def stamp(self) -> str | None:
        """What the answer depends on, now; None where nobody can say all of it."""
        if any((self.partitions, self.listed, self.words, self.rebuild, self.dry_run)):
            return None
        home = instance.dagster_home()
        if (history := instance.history_that_opens(checkout.CHECKOUT, home)) is None:
            return None
        files = (history / _INDEX, history / f"{_INDEX}-wal")
        code = (checkout.CHECKOUT / name for name in _CODE)
        return standing.stamp(
            root_of(checkout.CHECKOUT), (self.selection, history), (*code, *files)
        )

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
        return standing.note_of(state, (str(root_of(checkout.CHECKOUT)), self.selection))

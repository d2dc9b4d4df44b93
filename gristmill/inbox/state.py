"""What a look at an inbox finds, and what it passes to the next look."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_LATEST: Final = 253_402_300_800_000
"""Milliseconds since 1970 of the year 10000, which no date of Python has."""


@dataclass(frozen=True)
class Waiting:
    """A drop that has not been taken.

    signature: of the form in which the last look saw it.
    since: ms since 1970 of the first look that saw this form; it tells arrivals apart.
    first: ms since 1970 of the first look that saw the drop; 0 for `since`.
    """

    signature: str
    since: int
    first: int = 0

    @property
    def stored(self) -> list[Any]:
        """The fields for a cursor."""
        return [self.signature, self.since, *([self.first] if self.first else [])]


@dataclass
class State:
    """What one look passes to the next: some bytes for each drop, whatever its size.

    waiting: drops seen once, by key.
    settled: signatures of drops that have arrived, by key.
    refused: signatures of refused drops, by key. Entries that are no drops share
        one entry, however many there are.
    resume: the key where the next look begins, after a look that ran out of time.
    asked: of partitions that are not built though their drop was taken: what stood when a run was
        requested again, and how often it was.
    asked_from: the partition where the next look into these begins.
    built: names the drops and events of a look that found all drops built; empty for none.
    """

    waiting: dict[str, Waiting] = field(default_factory=dict)
    settled: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    resume: str = ""
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    asked_from: str = ""
    built: str = ""

    @staticmethod
    def read(cursor: str | None) -> State:
        """The state that `write` wrote.

        An empty one for None, and for a text that `write` does not write: a person can type any
        cursor into the UI. The next look then sees every drop for the first time.
        """
        try:
            return State._of(json.loads(cursor or "{}"))
        except (AttributeError, RecursionError, TypeError, ValueError):
            return State()

    @staticmethod
    def _of(raw: Any) -> State:
        """The state of a parsed cursor. Raises AttributeError, TypeError or ValueError."""
        waiting = {key: Waiting(*seen) for key, seen in raw.get("waiting", {}).items()}
        asked = {key: (form, tries) for key, (form, tries) in raw.get("asked", {}).items()}
        settled, refused = raw.get("settled", {}), raw.get("refused", {})
        resume, asked_from = raw.get("resume", ""), raw.get("asked_from", "")
        built = raw.get("built", "")
        signatures = [*settled.values(), *refused.values(), *(form for form, _ in asked.values())]
        texts = [
            resume,
            asked_from,
            built,
            *signatures,
            *(seen.signature for seen in waiting.values()),
        ]
        times = [time for seen in waiting.values() for time in (seen.since, seen.first)]
        numbers = [*times, *(tries for _, tries in asked.values())]
        if not all(type(text) is str for text in texts):
            raise TypeError("a text of the cursor")
        if not all(type(number) is int for number in numbers):
            raise TypeError("a number of the cursor")
        if not all(0 <= time < _LATEST for time in times):
            raise ValueError("a time of the cursor")
        return State(waiting, settled, refused, resume, asked, asked_from, built)

    def write(self) -> str:
        """The state as JSON, for a sensor's cursor."""
        waiting = {key: seen.stored for key, seen in self.waiting.items()}
        content: dict[str, object] = {
            "waiting": waiting,
            "settled": self.settled,
            "refused": self.refused,
            "resume": self.resume,
        }
        if self.asked:
            content |= {"asked": self.asked, "asked_from": self.asked_from}
        if self.built:
            content["built"] = self.built
        return json.dumps(content, separators=(",", ":"))


@dataclass(frozen=True)
class Arrival:
    """A drop that has settled and is to be built.

    run_key: names this very arrival.
    notes: what is unusual about the drop and allowed.
    """

    key: str
    path: Path
    signature: str
    files: int
    bytes: int
    run_key: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A drop that will not be built until it changes, and why.

    is_new: whether no look before refused it in this form.
    trace: the traceback of an error that nobody expected; empty for the others.
    since: ms since 1970 of the first look that saw it; 0 if that is not known.
    """

    key: str
    reason: str
    is_new: bool
    trace: str = ""
    since: int = 0


READY: Final = "ready"
TAKEN: Final = "taken"
ARRIVING: Final = "arriving"
REFUSED: Final = "refused"
WAITS: Final = "waits"
UNREAD: Final = "unread"
GONE: Final = "gone"


@dataclass(frozen=True)
class Standing:
    """A drop that is not in order, and why.

    key: of the drop.
    state: `ARRIVING`: a mark, a name or its age says that it may not be complete. `REFUSED`: it is
        not built until it changes. `WAITS`: something else is missing. `UNREAD`: nothing reads it.
        `GONE`: it was taken, and is not there.
    since: ms since 1970; 0 if that is not known.
    reason: in words, with what to do where something is to be done.
    """

    key: str
    state: str
    since: int
    reason: str


@dataclass
class Look:
    """The result of one look at an inbox.

    arrivals: drops to build now.
    refusals: drops and other entries that cannot be built.
    standing: drops from which nothing is built now, though nothing is wrong with them.
    is_whole: False where the look stopped before the last drop.
    present: keys of all drops that are there, refused ones included.
    """

    arrivals: list[Arrival] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    standing: list[Standing] = field(default_factory=list)
    is_whole: bool = True
    present: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def arriving(self) -> list[str]:
        """Keys of the drops that are not complete yet."""
        return [drop.key for drop in self.standing if drop.state == ARRIVING]

    @property
    def out_of_order(self) -> list[Standing]:
        """The drops from which nothing is built now."""
        refused = [
            Standing(refusal.key, REFUSED, refusal.since, refusal.reason)
            for refusal in self.refusals
        ]
        return [*refused, *self.standing]

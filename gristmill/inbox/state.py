"""What a look at an inbox finds, and what it passes to the next look."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Waiting:
    """A drop seen once with this signature; `since` (ms) tells arrivals apart."""

    signature: str
    since: int


@dataclass
class State:
    """What one look passes to the next: some bytes for each drop, whatever its size.

    waiting: drops seen once, by key.
    settled: signatures of drops that have arrived, by key.
    refused: signatures of refused drops, by key. Entries that are no drops share
        one entry, however many there are.
    resume: the key where the next look begins, after a look that ran out of time.
    """

    waiting: dict[str, Waiting] = field(default_factory=dict)
    settled: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    resume: str = ""

    @staticmethod
    def read(cursor: str | None) -> State:
        """The state that `write` wrote; an empty one for None."""
        raw = json.loads(cursor) if cursor else {}
        waiting = {key: Waiting(*seen) for key, seen in raw.get("waiting", {}).items()}
        return State(waiting, raw.get("settled", {}), raw.get("refused", {}), raw.get("resume", ""))

    def write(self) -> str:
        """The state as JSON, for a sensor's cursor."""
        waiting = {key: [seen.signature, seen.since] for key, seen in self.waiting.items()}
        return json.dumps(
            {
                "waiting": waiting,
                "settled": self.settled,
                "refused": self.refused,
                "resume": self.resume,
            },
            separators=(",", ":"),
        )


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
    """

    key: str
    reason: str
    is_new: bool
    trace: str = ""


@dataclass
class Look:
    """The result of one look at an inbox.

    arrivals: drops to build now.
    refusals: drops and other entries that cannot be built.
    arriving: keys of drops that are not complete yet.
    """

    arrivals: list[Arrival] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    arriving: list[str] = field(default_factory=list)

"""When a raw drop has arrived: one look at an inbox, compared with the look before.

Plain functions over folders and a small state. Dagster's sensor is
`sensors/raw_drops.py`. See also `inbox_listing`: what is in an inbox.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gristmill.inbox_listing import (
    FOLDER,
    TOML,
    Loose,
    Shape,
    Survey,
    ambiguous,
    list_inbox,
    named_few,
    short_digest,
    survey,
)
from gristmill.untrusted.errors import explained
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.timed import within

__all__ = [
    "FOLDER",
    "TOML",
    "Arrival",
    "Look",
    "Refusal",
    "Shape",
    "State",
    "Waiting",
    "look",
    "named_few",
    "present_drops",
]

# The key under which all entries that are no drops share one entry; no drop can have it.
_LOOSE = ""

DROP_SECONDS = 20.0
"""Seconds for listing one drop, and for asking its family whether it can be built."""


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


def look(
    inbox: Path,
    state: State,
    refuse: Callable[[Path], str | None],
    most: int,
    seconds: float,
    shape: Shape = FOLDER,
    links: LinkRule = REFUSE_LINKS,
) -> Look:
    """Compare the drops in `inbox` with `state`, and bring `state` up to date.

    A drop settles when two looks in a row see the same names, sizes and times in
    it and no file that a tool marks as unfinished. A settled drop that changes
    arrives again. Whatever is wrong with a drop, the others go on.

    inbox: a folder; it need not exist.
    state: of the look before; changed in place.
    refuse: returns why a settled drop cannot be built, or None. Each look calls it
        again until the drop is taken.
    most: arrivals in one look; the others come in the next.
    seconds: after this long the look stops, and the next one goes on from there.
    shape: what a drop is in this inbox; default a folder.
    links: what happens to links; default: they are refused.
    """
    result = Look()
    deadline = time.monotonic() + seconds
    entries, loose = list_inbox(inbox, shape, links)
    # An entry that cannot be read now may still be the drop that settled.
    _forget(state, {*entries, *loose, _LOOSE})
    _refuse_loose(state, result, loose)
    for key in _from(sorted(entries), state.resume):
        if time.monotonic() > deadline or len(result.arrivals) >= most:
            state.resume = key
            return result
        if reason := ambiguous(entries[key]):
            names = "\n".join(entry.name for entry in entries[key])
            _refuse(state, result, key, short_digest(names), reason)
            continue
        try:
            _look_at(key, Path(entries[key][0].path), state, refuse, links, result)
        except FileNotFoundError:
            # Removed after it was listed: the next look sees what is left.
            result.arriving.append(key)
        except Exception as error:  # noqa: BLE001  one drop must not delay all the others
            reason, trace = explained(error)
            _refuse(state, result, key, short_digest(reason), reason, trace)
    state.resume = ""
    return result


def present_drops(
    inbox: Path,
    refuse: Callable[[Path], str | None],
    shape: Shape = FOLDER,
    links: LinkRule = REFUSE_LINKS,
) -> Look:
    """All drops in `inbox` now, taken as complete because a person says so.

    Arguments as for `look`.
    """
    by_key, loose = list_inbox(inbox, shape, links)
    result = Look(refusals=[Refusal(key, item.reason, True) for key, item in loose.items()])
    for key, entries in sorted(by_key.items()):
        path = Path(entries[0].path)
        try:
            if (reason := ambiguous(entries)) is None:
                seen = _surveyed(path, links)
                reason = seen.refusal or _asked(path, refuse)
        except Exception as error:  # noqa: BLE001  one drop must not stop all the others
            result.refusals.append(Refusal(key, *_new(error)))
            continue
        if reason is not None:
            result.refusals.append(Refusal(key, reason, is_new=True))
            continue
        result.arrivals.append(_arrival(key, path, seen, run_key=""))
    return result


def _new(error: Exception) -> tuple[str, bool, str]:
    reason, trace = explained(error)
    return reason, True, trace


def _surveyed(path: Path, links: LinkRule) -> Survey:
    return within(DROP_SECONDS, path, lambda: survey(path, links))


def _asked(path: Path, refuse: Callable[[Path], str | None]) -> str | None:
    return within(DROP_SECONDS, path, lambda: refuse(path))


def _arrival(key: str, path: Path, seen: Survey, run_key: str) -> Arrival:
    return Arrival(key, path, seen.signature, seen.files, seen.bytes, run_key, seen.notes)


def _look_at(
    key: str,
    path: Path,
    state: State,
    refuse: Callable[[Path], str | None],
    links: LinkRule,
    result: Look,
) -> None:
    seen = _surveyed(path, links)
    if state.settled.get(key) == seen.signature:
        return
    before = state.waiting.get(key)
    if seen.files == 0 or seen.unfinished or before is None or before.signature != seen.signature:
        if before is None or before.signature != seen.signature:
            state.waiting[key] = Waiting(seen.signature, time.time_ns() // 1_000_000)
        result.arriving.append(key)
        return
    try:
        reason, trace = seen.refusal or _asked(path, refuse), ""
    except FileNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001  any error of one drop refuses that drop alone
        reason, trace = explained(error)
    if reason:
        _refuse(state, result, key, seen.signature, reason, trace)
        return
    del state.waiting[key]
    state.refused.pop(key, None)
    state.settled[key] = seen.signature
    run_key = f"{key}:{seen.signature}:{before.since}"
    result.arrivals.append(_arrival(key, path, seen, run_key))


def _refuse(
    state: State, result: Look, key: str, signature: str, reason: str, trace: str = ""
) -> None:
    is_new = state.refused.get(key) != signature
    state.refused[key] = signature
    result.refusals.append(Refusal(key, reason, is_new, trace))


def _refuse_loose(state: State, result: Look, loose: Mapping[str, Loose]) -> None:
    """Refuse the entries that are no drops. The state keeps only their newest time."""
    for key in loose:
        state.refused.pop(key, None)
    if not loose:
        state.refused.pop(_LOOSE, None)
        return
    newest = int(state.refused.get(_LOOSE, "-1"))
    for key, item in sorted(loose.items()):
        result.refusals.append(Refusal(key, item.reason, is_new=item.changed_ns > newest))
    state.refused[_LOOSE] = str(max(newest, *(item.changed_ns for item in loose.values())))


def _forget(state: State, present: set[str]) -> None:
    """Forget drops that are gone from the inbox: one that comes back arrives again."""
    for known in (state.waiting, state.settled, state.refused):
        for key in set(known) - present:
            del known[key]


def _from(names: list[str], start: str) -> Iterator[str]:
    """All names once, beginning with the first that is not before `start`."""
    yield from (name for name in names if name >= start)
    yield from (name for name in names if name < start)

"""When a raw drop has arrived: one look at an inbox, compared with the look before.

Plain functions over folders and a small state. Dagster's sensor is
`sensors/raw_drops.py`. See also `listing`: what is in an inbox.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gristmill.inbox.listing import (
    FOLDER,
    Loose,
    Shape,
    Survey,
    ambiguous,
    list_inbox,
    short_digest,
    survey,
)
from gristmill.inbox.state import Arrival, Look, Refusal, State, Waiting
from gristmill.printable import printable
from gristmill.untrusted.errors import explained
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.timed import within

# The key under which all entries that are no drops share one entry; no drop can have it.
_LOOSE = ""

DROP_SECONDS = 20.0
"""Seconds for listing one drop, and for asking its family whether it can be built."""


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
    result = Look(
        refusals=[
            Refusal(printable(key), _shown(item.reason), is_new=True) for key, item in loose.items()
        ]
    )
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
            result.refusals.append(Refusal(key, _shown(reason), is_new=True))
            continue
        result.arrivals.append(_arrival(key, path, seen, run_key=""))
    return result


def _shown(reason: str) -> str:
    """A reason for an event and a terminal; names in it come from the drop."""
    return "\n".join(printable(line) for line in reason.split("\n"))


def _new(error: Exception) -> tuple[str, bool, str]:
    reason, trace = explained(error)
    return _shown(reason), True, trace


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
    result.refusals.append(Refusal(key, _shown(reason), is_new, trace))


def _refuse_loose(state: State, result: Look, loose: Mapping[str, Loose]) -> None:
    """Refuse the entries that are no drops. The state keeps only their newest time."""
    for key in loose:
        state.refused.pop(key, None)
    if not loose:
        state.refused.pop(_LOOSE, None)
        return
    newest = int(state.refused.get(_LOOSE, "-1"))
    for key, item in sorted(loose.items()):
        is_new = item.changed_ns > newest
        result.refusals.append(Refusal(printable(key), _shown(item.reason), is_new))
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

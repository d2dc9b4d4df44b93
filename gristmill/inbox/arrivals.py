"""When a raw drop has arrived: one look at an inbox, compared with the look before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gristmill.inbox.judging import Asked, all_surveyed, arrival_of, judged, shown
from gristmill.inbox.listing import Loose, Survey, ambiguous, list_inbox, short_digest
from gristmill.inbox.shape import FOLDER, Shape
from gristmill.inbox.state import (
    ARRIVING,
    READY,
    REFUSED,
    Look,
    Refusal,
    Standing,
    State,
    Waiting,
)
from gristmill.printable import printable
from gristmill.untrusted.limits import explained

# The key under which all entries that are no drops share one entry; no drop can have it.
_LOOSE = ""


def look(
    inbox: Path,
    state: State,
    asked: Asked,
    most: int,
    seconds: float,
    shape: Shape = FOLDER,
    now_ns: Callable[[], int] = time.time_ns,
) -> Look:
    """Compare the drops in `inbox` with `state`, and bring `state` up to date.

    A drop settles when two looks in a row see the same names, sizes and times in it, no mark or
    name says that it is unfinished, and it stayed unchanged for `settling.seconds` or says that it
    is complete. A settled drop that changes arrives again. Whatever is wrong with a drop, the
    others go on.

    inbox: a folder; it need not exist.
    state: of the look before; changed in place.
    asked: what decides about each drop. A look asks again until the drop is taken.
    most: arrivals in one look; the others come in the next.
    seconds: after this long the look stops, and the next one goes on from there.
    shape: what a drop is in this inbox; default a folder.
    now_ns: the clock, in nanoseconds since 1970.
    """
    deadline = time.monotonic() + seconds
    entries, loose = list_inbox(inbox, shape, asked.links)
    result = Look(present=frozenset(entries))
    # An entry that cannot be read now may still be the drop that settled.
    _forget(state, {*entries, *loose, _LOOSE})
    _sort_loose(state, result, loose)
    order = _from(sorted(entries), state.resume)
    paths = [inbox / entries[key][0].name for key in order if len(entries[key]) == 1]
    surveys = all_surveyed(paths, asked.links)
    for key in order:
        if time.monotonic() > deadline or len(result.arrivals) >= most:
            state.resume = key
            result.is_whole = False
            return result
        if reason := ambiguous(entries[key]):
            _refuse(state, result, key, short_digest(reason), reason)
            continue
        try:
            _look_at(key, *next(surveys), state, asked, result, now_ns())
        except FileNotFoundError:
            # Removed after it was listed: the next look sees what is left.
            result.standing.append(Standing(key, ARRIVING, 0, "its files are being moved"))
        except Exception as error:  # noqa: BLE001  one drop must not delay all the others
            reason, trace = explained(error)
            _refuse(state, result, key, short_digest(reason), reason, trace)
    state.resume = ""
    return result


def _look_at(
    key: str,
    path: Path,
    seen: Survey | Exception,
    state: State,
    asked: Asked,
    result: Look,
    now_ns: int,
) -> None:
    if isinstance(seen, Exception):
        raise seen
    if state.settled.get(key) == seen.signature:
        return
    waiting, is_new = _waiting(state, key, seen.form, now_ns // 1_000_000)
    found = judged(path, seen, asked, waiting.since, now_ns, is_new)
    if found.state == REFUSED:
        _refuse(state, result, key, seen.form, found.reason, found.trace)
    elif found.state != READY:
        since = waiting.first or waiting.since
        result.standing.append(Standing(key, found.state, since, shown(found.reason)))
    else:
        del state.waiting[key]
        state.refused.pop(key, None)
        state.settled[key] = seen.signature
        run_key = f"{key}:{seen.signature}:{waiting.since}"
        result.arrivals.append(arrival_of(key, path, seen, run_key, found.notes))


def _waiting(state: State, key: str, form: str, now: int) -> tuple[Waiting, bool]:
    """What the state holds of a drop that is not taken, and whether this form of it is new."""
    before = state.waiting.get(key)
    if before is not None and before.signature == form:
        return before, False
    first = 0 if before is None else before.first or before.since
    state.waiting[key] = Waiting(form, now, first)
    return state.waiting[key], True


def _refuse(state: State, result: Look, key: str, form: str, reason: str, trace: str = "") -> None:
    is_new = state.refused.get(key) != form
    state.refused[key] = form
    waiting = state.waiting.get(key)
    since = waiting.since if waiting is not None else 0
    result.refusals.append(Refusal(key, shown(reason), is_new, trace, since))


def _sort_loose(state: State, result: Look, loose: Mapping[str, Loose]) -> None:
    """Refuse the entries that are no drops. The state keeps only their newest time."""
    for key in loose:
        state.refused.pop(key, None)
    refused = {key: item for key, item in loose.items() if not item.is_mark}
    for key in sorted(loose.keys() - refused.keys()):
        since, reason = loose[key].changed_ns // 1_000_000, shown(loose[key].reason)
        result.standing.append(Standing(printable(key), ARRIVING, since, reason))
    if not refused:
        state.refused.pop(_LOOSE, None)
        return
    newest = int(state.refused.get(_LOOSE, "-1"))
    for key, item in sorted(refused.items()):
        is_new, since = item.changed_ns > newest, item.changed_ns // 1_000_000
        result.refusals.append(Refusal(printable(key), shown(item.reason), is_new, since=since))
    state.refused[_LOOSE] = str(max(newest, *(item.changed_ns for item in refused.values())))


def _forget(state: State, present: set[str]) -> None:
    """Forget drops that are gone from the inbox: one that comes back arrives again."""
    for known in (state.waiting, state.settled, state.refused):
        for key in set(known) - present:
            del known[key]


def _from(names: list[str], start: str) -> list[str]:
    """All names once, beginning with the first that is not before `start`."""
    return [name for name in names if name >= start] + [name for name in names if name < start]

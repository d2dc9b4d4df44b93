"""The drops that are in an inbox now, without a look before: for commands and checks."""

from __future__ import annotations

from pathlib import Path

from gristmill.inbox.judging import Asked, Judgement, arrival_of, judged, shown, surveyed
from gristmill.inbox.listing import Survey, ambiguous, list_inbox
from gristmill.inbox.shape import FOLDER, Shape
from gristmill.inbox.state import ARRIVING, READY, REFUSED, Look, Refusal, Standing
from gristmill.printable import printable
from gristmill.untrusted.limits import explained


def present_drops(inbox: Path, asked: Asked, shape: Shape = FOLDER) -> Look:
    """All drops in `inbox` now: taken as complete because a person says so, unless a mark differs.

    inbox, asked, shape: as for `arrivals.look`; the seconds of settling do not count.
    """
    by_key, loose = list_inbox(inbox, shape, asked.links)
    result = Look(present=frozenset(by_key))
    for name, item in loose.items():
        found = Judgement(ARRIVING if item.is_mark else REFUSED, item.reason)
        _add(result, printable(name), found, item.changed_ns // 1_000_000)
    for key, entries in sorted(by_key.items()):
        if (several := ambiguous(entries)) is not None:
            result.refusals.append(Refusal(key, shown(several), is_new=True))
            continue
        path = Path(entries[0].path)
        found, seen = judged_now(path, asked)
        if seen is not None and found.state == READY:
            result.arrivals.append(arrival_of(key, path, seen, "", found.notes))
        else:
            _add(result, key, found, 0 if seen is None else seen.marks.newest_ns // 1_000_000)
    return result


def judged_now(path: Path, asked: Asked) -> tuple[Judgement, Survey | None]:
    """Returns the judgement of one drop, and its files; None where these cannot be listed.

    asked: what decides; the seconds of settling do not count.
    """
    seen = None
    try:
        seen = surveyed(path, asked.links)
        return judged(path, seen, asked), seen
    except FileNotFoundError:
        return Judgement(ARRIVING, "its files are being moved"), seen
    except Exception as error:  # noqa: BLE001  one drop must not stop all the others
        return Judgement(REFUSED, *explained(error)), seen


def _add(result: Look, key: str, found: Judgement, since: int) -> None:
    entry = found.standing(key, since)
    if isinstance(entry, Standing):
        result.standing.append(entry)
    else:
        result.refusals.append(entry)

"""The drops that are in an inbox now, without a look before: for commands and checks.

See also `arrivals.py`: the looks of a sensor.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gristmill.inbox.judging import arrival_of, judged, shown, surveyed
from gristmill.inbox.listing import ambiguous, list_inbox
from gristmill.inbox.marks import AT_ONCE, Settling
from gristmill.inbox.shape import FOLDER, Shape
from gristmill.inbox.state import INCOMPLETE, Look, Refusal, Standing
from gristmill.inbox.waiting import held_back
from gristmill.printable import printable
from gristmill.untrusted.errors import explained
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule


def present_drops(
    inbox: Path,
    refuse: Callable[[Path], str | None],
    shape: Shape = FOLDER,
    links: LinkRule = REFUSE_LINKS,
    settling: Settling = AT_ONCE,
    is_known: Callable[[str, str], bool] = lambda _key, _signature: False,
) -> Look:
    """All drops in `inbox` now: taken as complete because a person says so, unless a mark differs.

    inbox, refuse, shape, links: as for `arrivals.look`.
    settling: whether a drop needs a mark; the seconds do not count. Default: it needs none.
    is_known: takes the key and the signature of a drop, returns whether it was taken before, so
        that its lists need not be verified again; default: none was.
    """
    by_key, loose = list_inbox(inbox, shape, links)
    result = Look(present=frozenset(by_key))
    for name, item in loose.items():
        since, reason = item.changed_ns // 1_000_000, shown(item.reason)
        if item.is_mark:
            result.standing.append(Standing(printable(name), INCOMPLETE, since, reason))
        else:
            result.refusals.append(Refusal(printable(name), reason, is_new=True, since=since))
    for key, entries in sorted(by_key.items()):
        if (several := ambiguous(entries)) is not None:
            result.refusals.append(Refusal(key, shown(several), is_new=True))
            continue
        path, since = Path(entries[0].path), 0
        try:
            seen = surveyed(path, links)
            since = seen.marks.newest_ns // 1_000_000
            if held := held_back(seen.marks, "", settling):
                result.standing.append(Standing(key, INCOMPLETE, since, held))
                continue
            found = judged(path, seen, refuse, links, is_verified=is_known(key, seen.signature))
        except Exception as error:  # noqa: BLE001  one drop must not stop all the others
            reason, trace = explained(error)
            result.refusals.append(Refusal(key, shown(reason), True, trace, since))
            continue
        if found.reason is not None:
            result.refusals.append(Refusal(key, shown(found.reason), True, found.trace, since))
            continue
        result.arrivals.append(arrival_of(key, path, seen, "", found.notes))
    return result

"""Whether a drop that is there can be taken: its entries, its lists, and what its family says.

Each call that a file system or a family could make hang has a bound in time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.inbox.listing import Survey, survey
from gristmill.inbox.lists import GOOD, Verdict, Verifier
from gristmill.inbox.state import Arrival
from gristmill.inbox.waiting import EMPTY
from gristmill.printable import printable
from gristmill.untrusted.errors import explained
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.timed import each_within, within

DROP_SECONDS = 20.0
"""Seconds for listing one drop, and for asking its family whether it can be built."""
LIST_SECONDS: Final = 4.0
"""Seconds in which one look hashes the files of one drop that has a list."""

_verifier: Final = Verifier()


@dataclass(frozen=True)
class Judgement:
    """What was found about a drop.

    reason: why it is refused; None where it can be taken.
    trace: the traceback of an error that nobody expected; empty for the others.
    notes: what is unusual and allowed.
    missing: whether files are missing by a list of the drop, which may still come.
    is_complete: False while files are still being compared with a list.
    """

    reason: str | None = None
    trace: str = ""
    notes: tuple[str, ...] = ()
    missing: bool = False
    is_complete: bool = True


def surveyed(path: Path, links: LinkRule) -> Survey:
    """Returns the files of a drop; arguments and errors as for `listing.survey`."""
    return within(DROP_SECONDS, path, lambda: survey(path, links))


def all_surveyed(
    paths: Sequence[Path], links: LinkRule
) -> Generator[tuple[Path, Survey | Exception], None, None]:
    """Yields each drop with its files, or with the error that `surveyed` raises.

    paths: of the drops.
    links: what happens to links.
    """
    return each_within(DROP_SECONDS, paths, lambda path: survey(path, links))


def judged(
    path: Path,
    seen: Survey,
    refuse: Callable[[Path], str | None],
    links: LinkRule,
    seconds: float | None = None,
    is_verified: bool = False,
) -> Judgement:
    """Returns whether a drop can be taken.

    path: the drop, an entry of an inbox.
    seen: its files.
    refuse: returns why its family cannot build it, or None.
    links: what happens to links.
    seconds: for hashing files of a list in this call; default None: as long as it takes.
    is_verified: whether its lists need no look; default False.

    Raises FileNotFoundError where a file went meanwhile. Any other error is a reason.
    """
    if seen.refusal is not None:
        return Judgement(seen.refusal)
    if seen.files == 0:
        return Judgement(EMPTY)
    try:
        verdict = GOOD if is_verified else _verdict(path, seen, links, seconds)
        if verdict is None:
            return Judgement(is_complete=False)
        if verdict.reason is not None:
            return Judgement(verdict.reason, missing=verdict.missing)
        reason = within(DROP_SECONDS, path, lambda: refuse(path))
    except FileNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001  any error of one drop refuses that drop alone
        return Judgement(*explained(error))
    return Judgement(reason, notes=verdict.notes)


def arrival_of(key: str, path: Path, seen: Survey, run_key: str, notes: tuple[str, ...]) -> Arrival:
    """Returns the arrival of a drop; the arguments are its fields, and those of `seen`."""
    noted = (*seen.notes, *notes)
    return Arrival(key, path, seen.signature, seen.files, seen.bytes, run_key, noted)


def shown(reason: str) -> str:
    """Returns a reason for an event and a terminal; names in it come from the drop."""
    return "\n".join(printable(line) for line in reason.split("\n"))


def _verdict(path: Path, seen: Survey, links: LinkRule, seconds: float | None) -> Verdict | None:
    sizes = seen.sizes(path) if seen.marks.names else {}

    def verdict() -> Verdict | None:
        return _verifier.verdict(path, seen.form, seen.marks, sizes, links, seconds)

    return verdict() if seconds is None else within(DROP_SECONDS, path, verdict)

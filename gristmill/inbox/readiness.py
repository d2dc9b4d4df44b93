"""Whether a drop is ready: its four states, the judgement of a drop, and a look at an inbox.

A drop is `arriving`, `ready`, `unread` or `refused`. Whoever asks, a sensor, a command, a build or
a check, asks `judged`: a sensor by `look`, with what the look before saw, all others by
`present_drops` or `judged_now`, as if a person said that the drop is complete. What is built from
a ready drop may still wait for something else; the reason of the judgement says for what. Each
call that a file system or a family could make hang has a bound in time. Source:
docs/drops.md#states.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from gristmill.contract import BadInput
from gristmill.inbox.listing import (
    FOLDER,
    Loose,
    Shape,
    Survey,
    Unread,
    Waits,
    ambiguous,
    list_inbox,
    short_digest,
    survey,
)
from gristmill.inbox.marks import FORGOTTEN, INCOMPLETE, SUMS, Marks, Settling, listed_sums
from gristmill.printable import printable
from gristmill.untrusted.files import LinkRule
from gristmill.untrusted.limits import explained

Result = TypeVar("Result")
HashOf = Callable[[str], str | None]
"""Takes the name of a file of a drop; returns its sha256, None where it is not known now."""

ARRIVING: Final = "arriving"
READY: Final = "ready"
UNREAD: Final = "unread"
REFUSED: Final = "refused"
GONE: Final = "gone"
"""No state of a drop: a record or an instance names a drop that is not there."""
WAITS: Final = "waits"
"""No state of a drop: what is built from it waits for something else."""

DROP_SECONDS = 20.0
"""Seconds for listing one drop, and for asking its family whether it can be built."""

_LATEST: Final = 253_402_300_800_000
"""Milliseconds since 1970 of the year 10000, which no date of Python has."""
_LOOSE: Final = ""
"""The key under which all entries that are no drops share one entry; no drop can have it."""
_EMPTY: Final = "the folder holds no file: copy the files of the drop into it, or remove it"
_PAUSE_SECONDS: Final = 0.002
_MOVED: Final = "its files are being moved"

_unfinished: dict[Path, threading.Thread] = {}


@dataclass(frozen=True)
class Asked:
    """What decides about the drops of one inbox.

    refuse: takes a drop; returns why it cannot be built, or None. Raises Waits or Unread where
        nothing is wrong with it, and nothing can be built from it now.
    links: what happens to links.
    settling: how long a drop must stay unchanged, and whether it needs a mark.
    hash_of: takes a drop, returns the sums of its files that are known; default: none are.
    """

    refuse: Callable[[Path], str | None]
    links: LinkRule
    settling: Settling
    hash_of: Callable[[Path], HashOf] = lambda _: lambda _name: None


@dataclass(frozen=True)
class Judgement:
    """What was found about a drop.

    state: `READY`, `ARRIVING`, `REFUSED` or `UNREAD`; `GONE` where no drop is.
    reason: in words. That of a drop that is ready says what its partitions wait for; empty where
        they wait for nothing.
    trace: the traceback of an error that nobody expected; empty for the others.
    notes: what is unusual and allowed.
    """

    state: str = READY
    reason: str = ""
    trace: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_buildable(self) -> bool:
        """Whether a build may read the drop now: it is ready, and nothing else is missing."""
        return self.state == READY and not self.reason

    @property
    def line(self) -> str:
        """The state, and the reason."""
        return f"{self.state}: {self.reason}" if self.reason else self.state


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
class Standing:
    """A drop from which nothing is built now, and why.

    state: as of a judgement, of which it also has reason and trace.
    since: ms since 1970 of the first look that saw it; 0 if that is not known.
    is_new: whether no look before refused it in this form; default True.
    """

    key: str
    state: str
    since: int
    reason: str
    is_new: bool = True
    trace: str = ""


@dataclass
class Look:
    """The result of one look at an inbox.

    arrivals: drops to build now.
    idle: drops and other entries from which nothing is built now.
    is_whole: False where the look stopped before the last drop.
    present: keys of all drops that are there, refused ones included.
    """

    arrivals: list[Arrival] = field(default_factory=list)
    idle: list[Standing] = field(default_factory=list)
    is_whole: bool = True
    present: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def refusals(self) -> list[Standing]:
        """The drops and other entries that cannot be built until they change."""
        return [drop for drop in self.idle if drop.state == REFUSED]

    @property
    def standing(self) -> list[Standing]:
        """The drops from which nothing is built now, though nothing is wrong with them."""
        return [drop for drop in self.idle if drop.state != REFUSED]

    @property
    def arriving(self) -> list[str]:
        """Keys of the drops that are not complete yet."""
        return [drop.key for drop in self.idle if drop.state == ARRIVING]

    @property
    def out_of_order(self) -> list[Standing]:
        """All of `idle`, those that are refused first."""
        return [*self.refusals, *self.standing]

    def add(
        self,
        key: str,
        path: Path,
        seen: Survey | None,
        found: Judgement,
        since: int,
        is_new: bool = True,
        run_key: str = "",
    ) -> None:
        """Note what was found about a drop; `seen` are its files, None where they are not known."""
        if found.is_buildable and seen is not None:
            notes = (*seen.notes, *found.notes)
            arrival = Arrival(key, path, seen.signature, seen.files, seen.bytes, run_key, notes)
            self.arrivals.append(arrival)
            return
        reason = "\n".join(printable(line) for line in found.reason.split("\n"))
        self.idle.append(Standing(key, found.state, since, reason, is_new, found.trace))

    def add_loose(self, key: str, item: Loose, is_new: bool = True) -> None:
        """Note an entry that is no drop: a mark whose file may still come, or a refused one."""
        found = Judgement(ARRIVING if item.is_mark else REFUSED, item.reason)
        since = item.changed_ns // 1_000_000
        self.add(printable(key), Path(key), None, found, since, is_new)


class Waiting(NamedTuple):
    """A drop that has not been taken.

    signature: of the form in which the last look saw it.
    since: ms since 1970 of the first look that saw this form; it tells arrivals apart.
    first: ms since 1970 of the first look that saw the drop; 0 for `since`.
    """

    signature: str
    since: int
    first: int = 0


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
    def _of(raw: dict[str, Any]) -> State:
        """The state of a parsed cursor. Raises AttributeError, TypeError or ValueError."""
        waiting = {key: Waiting(*seen) for key, seen in raw.get("waiting", {}).items()}
        asked = {key: (form, tries) for key, (form, tries) in raw.get("asked", {}).items()}
        settled, refused = raw.get("settled", {}), raw.get("refused", {})
        words = [raw.get(name, "") for name in ("resume", "asked_from", "built")]
        times = [time for seen in waiting.values() for time in seen[1:]]
        texts = [*words, *settled.values(), *refused.values()]
        texts += [first for first, *_ in (*waiting.values(), *asked.values())]
        numbers = [*times, *(tries for _, tries in asked.values())]
        if {type(text) for text in texts} != {str} or {type(each) for each in numbers} - {int}:
            raise TypeError("a value of the cursor")
        if not all(0 <= time < _LATEST for time in times):
            raise ValueError("a time of the cursor")
        return State(waiting, settled, refused, words[0], asked, *words[1:])

    def write(self) -> str:
        """The state as JSON, for a sensor's cursor."""
        content = {name: value for name, value in vars(self).items() if value}
        return json.dumps(content, separators=(",", ":"))


def judged(
    path: Path,
    seen: Survey | Exception,
    asked: Asked,
    since_ms: int | None = None,
    now_ns: int = 0,
    is_new: bool = False,
) -> Judgement:
    """Returns whether a drop can be built from, and else why not.

    seen: its files, or the error with which they could not be listed.
    since_ms: ms since 1970 of the first look that saw this form of the drop; default None: a person
        says that it is complete, unless a mark differs.
    now_ns: nanoseconds since 1970, where `since_ms` is given.
    is_new: whether no look before saw this form; default False.
    """
    try:
        if isinstance(seen, Exception):
            raise seen
        return _judged(path, seen, asked, since_ms, now_ns, is_new)
    except FileNotFoundError:
        return Judgement(ARRIVING, _MOVED)
    except Exception as error:  # noqa: BLE001  any error of one drop refuses that drop alone
        return Judgement(REFUSED, *explained(error))


def judged_now(path: Path, asked: Asked) -> tuple[Judgement, Survey | None]:
    """Returns the judgement of one drop, and its files; None where these cannot be listed."""
    ((_, seen),) = all_surveyed([path], asked.links)
    return judged(path, seen, asked), seen if isinstance(seen, Survey) else None


def present_drops(inbox: Path, asked: Asked, shape: Shape = FOLDER) -> Look:
    """All drops in `inbox` now: taken as complete because a person says so, unless a mark differs.

    inbox, asked, shape: as for `look`; the seconds of settling do not count.
    """
    by_key, loose = list_inbox(inbox, shape, asked.links)
    result = Look(present=frozenset(by_key))
    for name, item in loose.items():
        result.add_loose(name, item)
    for key, entries in sorted(by_key.items()):
        path = Path(entries[0].path)
        if several := ambiguous(entries):
            result.add(key, path, None, Judgement(REFUSED, several), 0)
            continue
        found, seen = judged_now(path, asked)
        since = 0 if seen is None else seen.marks.newest_ns // 1_000_000
        result.add(key, path, seen, found, since)
    return result


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
    others are looked at.

    inbox: a folder; it need not exist.
    state: of the look before; changed in place.
    asked: what decides about each drop. A look asks again until the drop is taken.
    most: arrivals in one look; the others come in the next.
    seconds: after this long the look stops, and the next one begins there.
    shape: what a drop is in this inbox; default a folder.
    now_ns: the clock, in nanoseconds since 1970.
    """
    deadline = time.monotonic() + seconds
    entries, loose = list_inbox(inbox, shape, asked.links)
    result = Look(present=frozenset(entries))
    # An entry that cannot be read now may still be the drop that settled. A drop that is gone from
    # the inbox and comes back arrives again.
    for known in (state.waiting, state.settled, state.refused):
        for key in known.keys() - entries.keys() - loose.keys() - {_LOOSE}:
            del known[key]
    newest = int(state.refused.pop(_LOOSE, "-1"))
    for key, item in sorted(loose.items()):
        result.add_loose(key, item, item.changed_ns > newest)
    if refused := [item.changed_ns for item in loose.values() if not item.is_mark]:
        state.refused[_LOOSE] = str(max(newest, *refused))
    keys = sorted(entries)
    order = [*(k for k in keys if k >= state.resume), *(k for k in keys if k < state.resume)]
    paths = [inbox / entries[key][0].name for key in order if len(entries[key]) == 1]
    surveys = all_surveyed(paths, asked.links)
    for key in order:
        if time.monotonic() > deadline or len(result.arrivals) >= most:
            state.resume = key
            result.is_whole = False
            return result
        if several := ambiguous(entries[key]):
            _note(state, result, key, inbox, None, Judgement(REFUSED, several))
            continue
        path, seen = next(surveys)
        if isinstance(seen, Exception):
            _note(state, result, key, path, None, judged(path, seen, asked))
        elif state.settled.get(key) != seen.signature:
            is_new = _remember(state, key, seen.form, now_ns() // 1_000_000)
            since = state.waiting[key].since
            found = judged(path, seen, asked, since, now_ns(), is_new)
            _note(state, result, key, path, seen, found)
    state.resume = ""
    return result


def _remember(state: State, key: str, form: str, now: int) -> bool:
    """Note a drop that is not taken; returns whether no look before saw this form of it."""
    before = state.waiting.get(key)
    if before is not None and before.signature == form:
        return False
    first = 0 if before is None else before.first or before.since
    state.waiting[key] = Waiting(form, now, first)
    return True


def _note(
    state: State,
    result: Look,
    key: str,
    path: Path,
    seen: Survey | None,
    found: Judgement,
) -> None:
    """Add to the look what was found about a drop, and to the state what the next one needs."""
    waiting = state.waiting.get(key, Waiting("", 0))
    if found.state == REFUSED:
        form = short_digest(found.reason) if seen is None else seen.form
        is_new, state.refused[key] = state.refused.get(key) != form, form
    else:
        is_new = True
    run_key = ""
    if found.is_buildable and seen is not None:
        del state.waiting[key]
        state.refused.pop(key, None)
        state.settled[key] = seen.signature
        run_key = f"{key}:{seen.signature}:{waiting.since}"
    result.add(key, path, seen, found, waiting.first or waiting.since, is_new, run_key)


def _judged(
    path: Path, seen: Survey, asked: Asked, since_ms: int | None, now_ns: int, is_new: bool
) -> Judgement:
    marks = seen.marks
    if held := _held_back(marks, "" if since_ms is None else seen.unfinished, asked.settling):
        return Judgement(ARRIVING, held)
    until = "" if since_ms is None else young_until(marks, since_ms, now_ns, asked.settling)
    if is_new or (until and not marks.says_complete):
        return Judgement(ARRIVING, until or "it is taken if the next look finds no change")
    if seen.refusal is not None or seen.files == 0:
        return Judgement(REFUSED, seen.refusal or _EMPTY)
    notes = marks.notes
    if SUMS in marks.names:
        listed, names = listed_sums(marks.path(SUMS), path), seen.names(path)
        if absent := sorted(listed.keys() - names):
            more = f" (and {len(absent) - 1:,} more)" if len(absent) > 1 else ""
            missing = (
                f"{marks.path(SUMS)}: {printable(absent[0])} is listed and not in the drop{more}: "
                "bring it, or take its line out"
            )
            return Judgement(ARRIVING if until else REFUSED, missing)
        if differs := _differing(path, listed, marks.names[SUMS], asked.hash_of(path)):
            return Judgement(REFUSED, differs)
        # A recipe and settings are corrected in the drop.
        data = {name for name in names if name != FORGOTTEN and not name.endswith(".toml")}
        if others := sorted(data - listed.keys()):
            more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
            notes += (f"not in {SUMS}, so not verified: {printable(others[0])}{more}",)
    try:
        if reason := within(DROP_SECONDS, path, lambda: asked.refuse(path)):
            return Judgement(REFUSED, reason)
    except Waits as waits:
        return Judgement(READY, str(waits), notes=notes)
    except Unread as unread:
        return Judgement(UNREAD, str(unread), notes=notes)
    return Judgement(notes=notes)


def _differing(drop: Path, listed: Mapping[str, str], sums: str, hash_of: HashOf) -> str:
    """Why a drop is refused by its list; a sum that is not known is compared by the build."""
    for name, expected in sorted(listed.items()):
        if (found := hash_of(name)) in (None, expected):
            continue
        path = drop / name if drop.is_dir() else drop
        # A person writes recipes and settings, and changes them in the drop, too.
        changed = f", or take its line out of {sums} if you changed it here"
        return (
            f"{path}: its sha256 is {str(found)[:12]}…, but {sums} has {expected[:12]}…: copy the "
            f"file again{changed if name.endswith('.toml') else ''}"
        )
    return ""


def _held_back(marks: Marks, unfinished: str, settling: Settling) -> str:
    """Why a drop is arriving whatever its age; empty where it is not."""
    if INCOMPLETE in marks.names:
        mark = printable(marks.names[INCOMPLETE])
        return f"{mark} says that it is not complete: remove that file when it is"
    if unfinished:
        return (
            f"{printable(unfinished)} has a name that tools give to files they have not finished: "
            "let the copy end, or remove the file"
        )
    return printable(marks.missing()) if settling.require_done and not marks.says_complete else ""


def young_until(marks: Marks, since: int, now_ns: int, settling: Settling) -> str:
    """Returns until when a drop must stay unchanged, in words; empty where it did for long enough.

    since: ms since 1970 of the first look that saw it. now_ns: nanoseconds since 1970.

    The time of the newest file counts, too, so that a drop that was moved in as a whole, or that
    came while nothing looked, does not wait again.
    """
    changed = since * 1_000_000
    if 0 < marks.newest_ns <= now_ns:
        changed = min(changed, marks.newest_ns)
    until = changed + int(settling.seconds * 1e9)
    if until <= now_ns:
        return ""
    at = datetime.fromtimestamp(-(-until // 1_000_000_000), UTC)
    return (
        "its files came or changed a short time ago: without .done or SHA256SUMS it is taken if "
        f"nothing changes until {at:%Y-%m-%d %H:%M:%S} UTC (settle_seconds)"
    )


def all_surveyed(
    paths: Sequence[Path], links: LinkRule
) -> Generator[tuple[Path, Survey | Exception], None, None]:
    """Yields each drop with its files, or with the error with which they could not be listed."""
    return each_within(DROP_SECONDS, paths, lambda path: survey(path, links))


def within(seconds: float, file: Path, function: Callable[[], Result]) -> Result:
    """The result of `function()`, waited for at most so long; arguments as for `each_within`.

    Raises the BadInput of `each_within`; whatever the function raises otherwise.
    """
    ((_, answer),) = each_within(seconds, [file], lambda _: function())
    if isinstance(answer, Exception):
        raise answer
    return answer


def each_within(
    seconds: float, files: Sequence[Path], function: Callable[[Path], Result]
) -> Generator[tuple[Path, Result | Exception], None, None]:
    """Yield each file with the result of `function(file)`, waited for at most so long, or an error.

    seconds: to wait for one file. Where it does not answer, the error is a BadInput, at once if an
        earlier call for the same file still runs, and the others are asked. A signal ends the wait.
    function: called in one thread for as long as it answers. It must change nothing outside of
        itself, since it may continue after the wait.
    """
    left = list(files)
    while left:
        answers: deque[Result | Exception] = deque()
        stop, is_over = threading.Event(), threading.Event()
        given = function, left, answers, stop, is_over
        thread = threading.Thread(target=_answer, args=given, daemon=True)
        thread.start()
        try:
            for number, file in enumerate(left):
                end = time.monotonic() + seconds
                # To be woken for each answer would take more time than the answers.
                while not answers and (rest := end - time.monotonic()) > 0:
                    if is_over.wait(min(_PAUSE_SECONDS, rest)):
                        break
                if not answers:
                    _unfinished[file] = thread
                    left = left[number + 1 :]
                    yield file, BadInput(file, f"takes more than {seconds:g} seconds to look at")
                    break
                yield file, answers.popleft()
            else:
                return
        finally:
            stop.set()


def _answer(
    function: Callable[[Path], Result],
    files: Sequence[Path],
    answers: deque[Result | Exception],
    stop: threading.Event,
    is_over: threading.Event,
) -> None:
    for file in files:
        if stop.is_set():
            return
        earlier = _unfinished.get(file)
        if earlier is not None and earlier.is_alive():
            rule = "is still being looked at: its file system does not answer"
            answers.append(BadInput(file, rule))
            continue
        _unfinished.pop(file, None)
        try:
            answers.append(function(file))
        except Exception as error:  # noqa: BLE001  any error goes to the caller
            answers.append(error)
    is_over.set()

"""An answer that is given again while nothing that it depends on has changed.

A stamp stands for the files below a data root and those that links there lead to, the code, the
installed packages, variables, the user, and the day, on which months of chess and reports depend.
To make one reads no file: of each it takes kind, size, inode and both times. Whoever keeps an
answer makes the stamp before the answer and once more after it, and keeps nothing where they
differ. Source: docs/publishing-details.md#standing-answers.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final

from gristmill.layout import WORK
from gristmill.untrusted.files import CLOCK_TICK_NS

ANSWERS: Final = "answers"
"""Name of a folder of kept answers; no answer depends on those."""
_CODE: Final = Path(__file__).parent
_NOT_THERE: Final = (errno.ENOENT,)
_MOST: Final = 2_000_000
"""Files of a stamp; one that links lead to counts as `_OUTSIDE`."""
_OUTSIDE: Final = 20
_LIBRARY: Final = "-packages"
# Below `.gristmill`: what no answer depends on, and processes write at any time.
_PASSED_OVER: Final = (
    "locks",
    "browse",
    "history",
    "leaks",
    "inventory.lock",
    "verdicts.db-shm",
    ANSWERS,
)
_VARIABLES: Final = ("GRISTMILL_", "DAGSTER_", "PYTHONPATH", "TIKTOKEN_", "O200K_")


def stamp(root: Path, others: object, files: Iterable[Path] = ()) -> str | None:
    """Returns a stamp of all that an answer depends on.

    None where the clock runs behind that of a file, or where there are too many files.

    root: the data root. others: what else it depends on, by its repr.
    files: more files and folders; one need not be there.

    What changes after the call changes the next stamp.
    """
    libraries = [Path(path) for path in sys.path if _LIBRARY in path]
    packages = [(path, path.stat().st_mtime_ns) for path in libraries if path.is_dir()]
    variables = [item for item in sorted(os.environ.items()) if item[0].startswith(_VARIABLES)]
    days = f"{datetime.now(UTC):%x} {datetime.now().astimezone():%x}"
    hashed, newest = sha256(), 0
    outside = repr((root, others, sys.version, os.geteuid(), packages, variables, days))
    hashed.update(outside.encode("utf-8", "surrogateescape"))
    for place in (root, _CODE, *files):
        for path, *numbers in _files(str(place)):
            hashed.update(f"{path}\0{numbers}\n".encode("utf-8", "surrogateescape"))
            newest = max(newest, numbers[-1])
    if newest > time.time_ns():
        return None
    # Within one tick of the kernel's clock a file may change twice and have the same times.
    time.sleep(max(newest + CLOCK_TICK_NS - time.time_ns(), 0) / 1e9)
    return hashed.hexdigest()


def kept(note: Path, stamped: str) -> Any:
    """Returns the answer in a note, as JSON has it; None where it has another stamp, or none."""
    try:
        found = json.loads(note.read_bytes())
        return found["answer"] if found["stamp"] == stamped else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def keep(note: Path, stamped: str, answer: object) -> None:
    """Keep an answer, which JSON can hold, where the note can be written."""
    new = note.with_name(f"{note.name}.{os.getpid()}")
    with suppress(OSError):
        note.parent.mkdir(exist_ok=True)
        new.write_text(json.dumps({"stamp": stamped, "answer": answer}))
        new.replace(note)


def note_of(state: Path, question: object) -> Path:
    """Returns where the answer to a question is kept; state: a folder that is there."""
    return state / ANSWERS / f"{sha256(repr(question).encode()).hexdigest()[:16]}.json"


def _files(place: str) -> Iterator[tuple[Any, ...]]:
    """Yield what is at or below a place, and what links there lead to, with numbers of its inode.

    The last number is the time of the inode; 0 for a folder, whose entries are there themselves.
    """
    start = os.path.realpath(place)
    waiting, seen, room = [start], {start}, _MOST
    yield start, *_numbers(start)
    for folder in waiting:
        try:
            with os.scandir(folder) as listing:
                found = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield folder, error.errno
            continue
        # A link may lead to the whole disk.
        room -= len(found) if f"{folder}/".startswith(f"{start}/") else len(found) * _OUTSIDE
        if room < 0:
            yield folder, sys.maxsize
            return
        passed_over = _PASSED_OVER if folder.endswith(f"/{WORK}") else ("__pycache__",)
        for entry in found:
            numbers = _numbers(entry)
            if entry.name.startswith(passed_over) or numbers == _NOT_THERE:
                continue
            yield entry.path, *numbers
            target = entry.path
            if entry.is_symlink():
                target = os.path.realpath(entry)
                numbers = _numbers(target)
                yield target, *numbers
            is_walked = target != entry.path and target.startswith(f"{start}/")
            is_folder = S_ISDIR(numbers[0]) and not numbers[-1]
            if is_folder and not is_walked and target not in seen:
                waiting.append(target)
                seen.add(target)


def _numbers(place: str | os.DirEntry[str]) -> tuple[int, ...]:
    try:
        found = os.lstat(place) if isinstance(place, str) else place.stat(follow_symlinks=False)
    except OSError as error:
        return (error.errno or 0,)
    if S_ISDIR(found.st_mode):
        return found.st_mode, found.st_ino, 0
    if os.fspath(place).endswith("-wal"):
        # A reader of SQLite makes this file where it is not there, and gives it to its owner.
        return (found.st_size, found.st_mtime_ns) if found.st_size else _NOT_THERE
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

"""Verify a drop by the lists that it brings: `.done` with a number, and `SHA256SUMS`.

A list is verified before the drop is taken, a part of the time in each look. See also `marks.py`.
Source: docs/drops.md#lists.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from gristmill.contract import BadInput
from gristmill.inbox.marks import DONE, SUMS, Marks, is_mark
from gristmill.printable import printable
from gristmill.untrusted.files import LinkRule, open_file, read_file

_LINE: Final = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *]([^\n]+)")
_TAGGED: Final = re.compile(rb"(\\?)SHA256 \(([^\n]+)\) = ([0-9a-fA-F]{64})")
_ESCAPED: Final = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}
_MOST_SUMS: Final = 256 << 20
_MOST_NUMBER: Final = 32
_READ_BYTES: Final = 1 << 20
_MOST_KEPT: Final = 256

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Verdict:
    """What the lists of a drop say.

    reason: why the drop is refused; None where it is as listed.
    missing: whether the reason is that files are missing, which may still come.
    notes: what is unusual and allowed.
    """

    reason: str | None = None
    missing: bool = False
    notes: tuple[str, ...] = ()


GOOD: Final = Verdict()


class Verifier:
    """Verifies drops in steps of bounded time, and remembers verdicts while the process lives."""

    def __init__(self) -> None:
        self._verdicts: OrderedDict[str, tuple[str, Verdict]] = OrderedDict()
        self._steps: OrderedDict[str, tuple[str, Generator[None, None, Verdict]]] = OrderedDict()

    def verdict(
        self,
        drop: Path,
        form: str,
        marks: Marks,
        files: Mapping[str, int],
        links: LinkRule,
        seconds: float | None = None,
    ) -> Verdict | None:
        """Returns what the lists of a drop say; None while its files are still being hashed.

        drop: its path, a folder or a file.
        form: names this form of the drop: its signature and that of its marks.
        marks: of the drop.
        files: bytes of each of its files, by the path relative to the drop; of a drop that is a
            file by its name.
        links: what happens to links.
        seconds: to spend in this call; default None: as long as it takes.

        Raises OSError where a file cannot be read, BadInput where it is no regular file.
        """
        if not {SUMS, DONE} & set(marks.names):
            return GOOD
        where = str(drop)
        known, verdict = self._verdicts.get(where, ("", GOOD))
        if known == form:
            return verdict
        started, steps = self._steps.pop(where, ("", None))
        if steps is None or started != form:
            steps = _verified(drop, marks, files, links)
        deadline = None if seconds is None else time.monotonic() + seconds
        while deadline is None or time.monotonic() < deadline:
            try:
                next(steps)
            except StopIteration as end:
                found: Verdict = end.value
                _keep(self._verdicts, where, (form, found))
                return found
        _keep(self._steps, where, (form, steps))
        return None


def _keep(kept: OrderedDict[str, Kept], where: str, value: Kept) -> None:
    kept[where] = value
    while len(kept) > _MOST_KEPT:
        kept.popitem(last=False)


def _verified(
    drop: Path, marks: Marks, files: Mapping[str, int], links: LinkRule
) -> Generator[None, None, Verdict]:
    """The verdict, as the value of a generator that yields after each piece of a file."""
    try:
        if DONE in marks.names and (verdict := _counted(marks.path(DONE), drop, files)).reason:
            return verdict
        if SUMS not in marks.names:
            return GOOD
        listed = listed_sums(marks.path(SUMS), drop)
    except BadInput as error:
        return Verdict(str(error))
    if absent := sorted(name for name in listed if name not in files):
        more = f" (and {len(absent) - 1:,} more)" if len(absent) > 1 else ""
        return Verdict(
            f"{marks.path(SUMS)}: {printable(absent[0])} is listed and not in the drop{more}: "
            "bring it, or take its line out",
            missing=True,
        )
    is_folder = drop.is_dir()
    for name, expected in sorted(listed.items()):
        path, digest = drop / name if is_folder else drop, hashlib.sha256()
        with open_file(path, root=drop.parent, links=links, buffering=0) as file:
            while octets := file.read(_READ_BYTES):
                digest.update(octets)
                yield
        if digest.hexdigest() != expected:
            return Verdict(
                f"{path}: its sha256 is {digest.hexdigest()[:12]}…, but {marks.names[SUMS]} "
                f"has {expected[:12]}…: copy the file again"
            )
    others = sorted(name for name in files if name not in listed)
    if not others:
        return GOOD
    more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
    return Verdict(notes=(f"not in {SUMS}, so not verified: {printable(others[0])}{more}",))


def _counted(mark: Path, drop: Path, files: Mapping[str, int]) -> Verdict:
    """The verdict by the number in `.done`: files of a folder, bytes of a file."""
    text = read_file(mark, root=mark.parent, most=_MOST_NUMBER).decode(errors="replace").strip()
    if not text:
        return GOOD
    is_folder = drop.is_dir()
    what = "files" if is_folder else "bytes"
    if not (text.isascii() and text.isdigit()):
        raise BadInput(mark, f"must be empty or hold the number of {what}, not {printable(text)!r}")
    there = len(files) if is_folder else sum(files.values())
    if there == int(text):
        return GOOD
    return Verdict(
        f"{mark}: says {int(text):,} {what}, but there are {there:,}: copy the drop again, or "
        "correct the number",
        missing=there < int(text),
    )


def listed_sums(mark: Path, drop: Path, most: int = _MOST_SUMS) -> dict[str, str]:
    """Returns the sha256 of each file that a list names.

    mark: the list.
    drop: the folder or the file that it is of.
    most: bytes of the list at most; default 256 MiB.

    Raises BadInput for a line that is none, and for a list without a file.
    """
    octets = read_file(mark, root=mark.parent, most=most)
    is_folder = drop.is_dir()
    listed: dict[str, str] = {}
    for number, line in enumerate(octets.split(b"\n"), 1):
        if not line.strip():
            continue
        name, digest = _entry(mark, number, line.removesuffix(b"\r"))
        if is_folder and is_mark(name):
            continue
        if not is_folder and name != drop.name:
            raise BadInput(mark, f"line {number}: names {printable(name)!r}, not {drop.name}")
        if listed.setdefault(name, digest) != digest:
            raise BadInput(mark, f"line {number}: {printable(name)!r} has two sums: leave one")
    if not listed:
        raise BadInput(mark, "lists no file: write it with `sha256sum * > SHA256SUMS`")
    return listed


def _entry(mark: Path, number: int, line: bytes) -> tuple[str, str]:
    if found := _LINE.fullmatch(line):
        escaped, digest, name = found.groups()
    elif found := _TAGGED.fullmatch(line):
        escaped, name, digest = found.groups()
    else:
        raise BadInput(
            mark,
            f"line {number}: must be 64 hex digits, two spaces and a name, as sha256sum has it",
        )
    if escaped:
        name = re.sub(
            rb"\\([\\nr])", lambda one: {b"n": b"\n", b"r": b"\r"}.get(one[1], b"\\"), name
        )
    text = name.decode(errors="surrogateescape").removeprefix("./")
    if text.startswith("/") or "\0" in text or {"", ".", ".."} & set(text.split("/")):
        raise BadInput(mark, f"line {number}: {printable(text)!r} must be a path in the drop")
    return text, digest.decode().lower()


def written_sums(sums: Mapping[str, str]) -> bytes:
    """Returns a list as sha256sum writes it.

    sums: the sha256 of each file, by its path.
    """
    lines = []
    for name, digest in sorted(sums.items()):
        escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n")
    return "".join(lines).encode(errors="surrogateescape")

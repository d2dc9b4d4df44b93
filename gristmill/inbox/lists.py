"""Verify a drop by the lists that it brings: `.done` with a number, and `SHA256SUMS`.

A look compares names, numbers and the sums that are known; whoever builds hashes the files and
compares the others. Source: docs/drops.md#lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.inbox.marks import DONE, SUMS, Marks, is_mark
from gristmill.printable import printable
from gristmill.untrusted.files import read_file

_LINE: Final = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *]([^\n]+)")
_TAGGED: Final = re.compile(rb"(\\?)SHA256 \(([^\n]+)\) = ([0-9a-fA-F]{64})")
_ESCAPED: Final = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}
_MOST_SUMS: Final = 256 << 20
_MOST_NUMBER: Final = 32

HashOf = Callable[[str], str | None]
"""Takes the name of a file of a drop; returns its sha256, None where it is not known now."""


@dataclass(frozen=True)
class Verdict:
    """What the lists of a drop say.

    reason: why the drop is refused; None where it is as listed.
    missing: whether the reason is that files are missing, which may still come.
    """

    reason: str | None = None
    missing: bool = False
    notes: tuple[str, ...] = ()


GOOD: Final = Verdict()


def verdict(drop: Path, marks: Marks, files: Mapping[str, int], hash_of: HashOf) -> Verdict:
    """Returns what the lists of a drop say.

    drop: its path, a folder or a file.
    marks: of the drop.
    files: bytes of each of its files, by the path relative to the drop; of a drop that is a file by
        its name.
    hash_of: the sums of its files. A sum that is not known is compared by the build, which hashes.

    Raises OSError where a file cannot be read.
    """
    try:
        if DONE in marks.names and (counted := _counted(marks.path(DONE), drop, files)).reason:
            return counted
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
        found = hash_of(name)
        if found is not None and found != expected:
            path, sums = drop / name if is_folder else drop, marks.names[SUMS]
            # A person writes recipes and settings, and changes them in the drop, too.
            changed = f", or take its line out of {sums} if you changed it here"
            return Verdict(
                f"{path}: its sha256 is {found[:12]}…, but {sums} has {expected[:12]}…: copy the "
                f"file again{changed if name.endswith('.toml') else ''}"
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
    """Returns a list as sha256sum writes it."""
    lines = []
    for name, digest in sorted(sums.items()):
        escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n")
    return "".join(lines).encode(errors="surrogateescape")

"""Audits: what people found when they looked at the steps of an example.

A file is only appended to, and the last line of an example and text counts.
Source: `docs/formats/reasoning.md#audits`.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, os_reason
from gristmill.untrusted.files import REFUSE_LINKS, opened
from gristmill.untrusted.json_text import load_json
from gristmill.untrusted.limits import Limits

RIGHT, WRONG = "right", "wrong"
VERDICTS: Final = (RIGHT, WRONG)
LIMITS: Final = Limits(bytes=64 << 20, depth=4, digits=20)
"""Limits of a file of audits, which is part of a drop."""

Key = tuple[str, str]
"""example_id and text_sha256."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One verdict. example_id, text_sha256: of the example, and of its rendered text in UTF-8."""

    example_id: str
    text_sha256: str
    verdict: str
    by: str
    at: str
    notes: str

    @property
    def key(self) -> Key:
        """What the verdict is for."""
        return self.example_id, self.text_sha256


_KEYS: Final = tuple(spec.name for spec in fields(Audit))
_NEEDED: Final = frozenset(_KEYS[:3])


def read(path: Path) -> Iterator[Audit]:
    """Yield the audits of a file in its order.

    path: `drops/reasoning/audits/<corpus>__<split>.jsonl`; a link is refused.

    Blank lines are left out; `by`, `at` and `notes` may be missing. Raises BadInput with the line
    for anything that is no audit, and for a file over `LIMITS`.
    """
    with opened(path, REFUSE_LINKS) as file:
        data = file.read(LIMITS.bytes + 1)
    if len(data) > LIMITS.bytes:
        raise BadInput(path, f"has more than {LIMITS.bytes:,} bytes")
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield _parsed(line, path, number)


def latest(path: Path | None) -> dict[Key, str]:
    """The verdict that counts, by example_id and text_sha256."""
    if path is None or not os.path.lexists(path):
        return {}
    return {audit.key: audit.verdict for audit in read(path)}


def append(path: Path, audit: Audit) -> None:
    """Append an audit to a file, which is made with its folder where it is missing.

    Other writers wait meanwhile, and the line is on the disk when this returns. A last line
    without an end, of a writer that was killed, gets its end first. Raises ValueError for an
    unknown verdict, BadInput for a path that is a link.
    """
    if audit.verdict not in VERDICTS:
        raise ValueError(f"verdict: {audit.verdict!r} is none of {', '.join(VERDICTS)}")
    line = json.dumps(asdict(audit), ensure_ascii=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise BadInput(path, f"cannot be written: {os_reason(error)}") from error
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        try:
            view = memoryview(line)
            while view:
                view = view[file.write(view) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)  # half a line would make the file unreadable
            raise


def _parsed(line: bytes, path: Path, number: int) -> Audit:
    value = load_json(line, path, LIMITS, number)
    if (wrong := _wrong(value)) is not None:
        raise BadInput(path, wrong, number)
    return Audit(**{name: value.get(name, "") for name in _KEYS})


def _wrong(value: Any) -> str | None:
    if not isinstance(value, Mapping) or not _NEEDED <= value.keys() <= set(_KEYS):
        return f"is no object with the keys {', '.join(_KEYS)}"
    if not all(isinstance(each, str) for each in value.values()):
        return "has a value that is no text"
    if value["verdict"] not in VERDICTS:
        return f"verdict {value['verdict']!r} is none of {', '.join(VERDICTS)}"
    return None

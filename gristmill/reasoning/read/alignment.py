"""Examples with their steps, the sample of the week, and the audits of people.

Source: `docs/formats/reasoning.md#alignment`, `docs/formats/reasoning.md#audits`.
"""

from __future__ import annotations

import fcntl
import hashlib
import heapq
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.contract import BadInput, os_reason
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.split_file import is_there
from gristmill.reasoning.format import align, index, names
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.read.trace import aligned_row, line_of, place_of, record_at
from gristmill.reasoning.render.steps import NO_STEPS
from gristmill.reasoning.render.text import Rendered, rendered
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


@dataclass(frozen=True)
class Example:
    """One row of an alignment."""

    row: AlignRow
    rendered: Rendered
    record: Mapping[str, Any]
    index: Mapping[str, Any]

    @property
    def text_sha256(self) -> str:
        """Hash of the text, as audits have it."""
        return str(self.index["text_sha256"])


def pairs(
    tokenized: Path, alignment: Path, corpus: str, split: str
) -> Iterator[tuple[AlignRow, dict[str, Any]]]:
    """Yield the rows of the alignment of a split, each with its line of the index.

    Memory does not grow with the files. Raises BadInput where a file is not there, or where both
    do not have the same examples in the same order.
    """
    path, index_path = alignment / names.alignment(corpus, split), names.split_index(corpus, split)
    if not is_there(tokenized / index_path):
        raise BadInput(tokenized / index_path, "is not there: build reasoning/gpt2_shards")
    rows, lines = align.rows(path), index.objects(tokenized / index_path)
    for row, line in zip_longest(rows, lines):
        if row is None or line is None or row.example_id != line["example_id"]:
            found = row.example_id if row else "no more row"
            expected = line["example_id"] if line else "no more example"
            rule = f"has {found} where {index_path} has {expected}: build reasoning/alignment again"
            raise BadInput(path, rule)
        yield row, line


def example(normalized: Path, tokenized: Path, alignment: Path, example_id: str) -> Example:
    """One row of an alignment, with its text.

    Raises GristmillError for an unknown id, BadInput where a file is not there, has no such
    example, or is of another text.
    """
    place = place_of(example_id)
    _, row = aligned_row(alignment, place)
    entry = line_of(tokenized, place.partition, example_id)
    record, _ = record_at(normalized, place.partition, place.record)
    text = rendered(record)
    if hashlib.sha256(text.text.encode()).hexdigest() != entry["text_sha256"]:
        rule = f"{row.example_id} is of another text: build the shards again"
        raise BadInput(tokenized / names.split_index(place.corpus, place.split), rule)
    return Example(row, text, record, entry)


class Drawn(NamedTuple):
    """One example of a sample."""

    row: AlignRow
    text_sha256: str


def week_of(day: date) -> str:
    """The ISO week of a day, as `2026-W47`."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def draw(
    tokenized: Path, alignment: Path, audited: Path, corpus: str, week: str, count: int
) -> list[Drawn]:
    """Draw the sample of a corpus for one week, over all splits that are aligned.

    Examples with less confidence come first; among equals, the hash of week and id decides.
    Those without steps, and those that have an audit of the same text, are left out. Memory does
    not grow with the examples. Raises BadInput where an alignment is not that of its index.
    """
    found = (
        (drawn.row.confidence, hashlib.sha256(said.encode()).digest(), drawn)
        for key in splits_in(alignment, "{split}.align.jsonl")
        if (split := key.split("__")[1]) and corpus_and_split(key)[0].name == corpus
        for drawn in _open(tokenized, alignment, audited, corpus, split)
        if (said := f"{week} {drawn.row.example_id}")
    )
    return [drawn for _, _, drawn in heapq.nsmallest(count, found, key=lambda each: each[:2])]


def _open(
    tokenized: Path, alignment: Path, audited: Path, corpus: str, split: str
) -> Iterator[Drawn]:
    """Yield the examples of a split that have steps and no audit."""
    verdicts = latest(audited / Path(names.audits(f"{corpus}__{split}")).name)
    for row, line in pairs(tokenized, alignment, corpus, split):
        if row.rule != NO_STEPS and (row.example_id, line["text_sha256"]) not in verdicts:
            yield Drawn(row, line["text_sha256"])

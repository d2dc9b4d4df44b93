"""The weekly sample of examples whose steps a person looks at: the least sure ones first.

Source: `docs/formats/reasoning.md#audits`.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from gristmill.contract import BadInput
from gristmill.reasoning.format import align, audits, index, names
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.corpora import corpus_and_split
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.render.steps import NO_STEPS


class Drawn(NamedTuple):
    """One example of a sample.

    text_sha256: of its text, as audits have it.
    """

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

    tokenized, alignment: folders of the token shards and of the alignments.
    audited: folder of the audits, `drops/reasoning/audits`.
    corpus: its name.
    week: seed of the sample, as `2026-W47`.
    count: examples, at most.

    Examples with less confidence come first; among equals, the hash of week and id decides.
    Those without steps, and those that have an audit of the same text, are left out. Memory does
    not grow with the examples. Raises BadInput where an alignment is not that of its index.
    """
    found = (
        (drawn.row.confidence, _order(week, drawn.row.example_id), drawn)
        for key in splits_in(alignment, "{split}.align.jsonl")
        if (split := key.split("__")[1]) and corpus_and_split(key)[0].name == corpus
        for drawn in _open(tokenized, alignment, audited, corpus, split)
    )
    return [drawn for _, _, drawn in heapq.nsmallest(count, found, key=lambda each: each[:2])]


def _order(week: str, example_id: str) -> bytes:
    return hashlib.sha256(f"{week} {example_id}".encode()).digest()


def _open(
    tokenized: Path, alignment: Path, audited: Path, corpus: str, split: str
) -> Iterator[Drawn]:
    """Yield the examples of a split that have steps and no audit."""
    path = alignment / names.alignment(corpus, split)
    if not path.exists():
        return
    verdicts = audits.latest(audited / Path(names.audits(f"{corpus}__{split}")).name)
    entries = index.objects(tokenized / names.split_index(corpus, split))
    for row in align.rows(path):
        entry = next(entries, None)
        if entry is None or entry["example_id"] != row.example_id:
            rule = f"{row.example_id} is not in the index at this place"
            raise BadInput(path, f"{rule}: build reasoning/alignment again")
        key = (row.example_id, entry["text_sha256"])
        if row.rule != NO_STEPS and key not in verdicts:
            yield Drawn(row, entry["text_sha256"])

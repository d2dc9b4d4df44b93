"""What the texts of a data root hold of one evaluation set.

Source: `docs/formats/reasoning.md#leaks`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.contract import FileNote, Summary
from gristmill.hashing import HashedFile
from gristmill.leaks.findings import Place, audit, window, worst
from gristmill.leaks.texts import EvaluationSet, Part
from gristmill.reasoning.format import leaks
from gristmill.run.progress import SILENT, Progress


@dataclass(frozen=True)
class LeaksSummary(Summary):
    """What was found.

    questions: of the set. short: those of them that are too short to be looked for. texts: files
    that were looked at. looked_at: their rows. unread: those that could not be read. leaked: those
    in which a question stands. leaks: questions that were found, each with each of its places.
    changed: further leaks, of questions with other names or numbers, which may be others.
    rows: those of all of them that are listed.
    """

    rows: int
    questions: int
    short: int
    texts: int
    looked_at: int
    unread: int
    leaked: int
    leaks: int
    changed: int


def write_leaks(
    root: Path,
    out: Path,
    sets: Sequence[EvaluationSet],
    parts: Sequence[Part],
    progress: Progress = SILENT,
) -> LeaksSummary:
    """Write `leaks.jsonl`, the worst of each kind first, and `summary.json`, what each text holds.

    root: keeps what is found in a text. out: folder to write, which must not exist. sets: those of
    one name. Memory and errors as `audit`, and the texts of the leaks that are listed.
    """
    out.mkdir(parents=True)
    findings = audit(root, parts, sets, progress=progress)
    found = sum(each.numbers.shape[1] for each in findings)
    changed = sum(each.changed.shape[1] for each in findings)
    rows, total = 0, min(found + changed, leaks.MOST)
    with HashedFile(out / leaks.ROWS) as file, progress.stage("list", "rows", total) as stage:
        for leak in worst(root, findings, leaks.MOST):
            rows += 1
            row = {"share": round(leak.share, 6), "changed": leak.changed}
            row |= _side("", leak.text, leak.text_whole, leak.marked)
            row |= _side("question_", leak.question, leak.question_whole, leak.asked_marked)
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            stage.advance(1)
    texts = [each.counts | {"sha256": each.part.sha256} for each in findings]
    of_sets = {each.set: each for each in findings}.values()
    summary = {
        "set": sets[0].name,
        "questions": sum(each.questions for each in of_sets),
        "short": sum(each.short for each in of_sets),
        "leaks": found,
        "changed": changed,
        "listed": rows,
        "texts": texts,
    }
    (out / leaks.SUMMARY).write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    return LeaksSummary(
        files={leaks.ROWS: FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)},
        rows=rows,
        **{name: summary[name] for name in ("questions", "short", "leaks", "changed")},
        texts=len(texts),
        looked_at=sum(each.rows for each in findings),
        unread=sum(each.unread for each in findings),
        leaked=sum(each.leaked for each in findings),
    )


def _side(
    prefix: str, place: Place, text: str, marked: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """The columns of a text, of which a part around what both share is kept."""
    begin, end = window(text, marked, leaks.MOST_TEXT)
    marks = [(max(a, begin) - begin, min(b, end) - begin) for a, b in marked]
    # A lone surrogate has no bytes in UTF-8.
    shown = text[begin:end].encode(errors="replace").decode()
    row = {**place._asdict(), "text": shown, "marks": [pair for pair in marks if pair[0] < pair[1]]}
    return {f"{prefix}{name}": value for name, value in row.items()}

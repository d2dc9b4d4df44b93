"""What a worker does: rows of a shard become a part, without those that a dataset leaves out.

See also `../kd_part.py` and `../chat/part.py`, which render them; `filters.py`: which stay.
Source: `docs/formats/synth.md#distill-filters`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.synth.builders.chat.part import (
    ChatPart,
    ChatTask,
    HarmonyPart,
    PiecesPart,
    Rendered,
)
from gristmill.synth.builders.distill import filters, plain
from gristmill.synth.builders.harmony_shard import MESSAGES
from gristmill.synth.builders.kd_part import Part, Sorted, Task, written
from gristmill.synth.config import ChatDistillConfig, DistillConfig
from gristmill.synth.format import parquet
from gristmill.synth.raw.render import HARMONY
from gristmill.synth.read.distill import answers
from gristmill.synth.render.chat import assemble
from gristmill.synth.render.documents import Documents

if TYPE_CHECKING:
    import pyarrow as pa

TEXTS = ("constraints", "query_seed_text")
_PLAIN = "chatgpt_plain"
_SINGLE = 'ValueError: chatgpt_plain takes one question and one answer: set template = "harmony"'


@dataclass(frozen=True)
class DistillTask(ChatTask):
    """One part to make. config: of the dataset. shares: of rows that stay. columns: also read."""

    config: DistillConfig = field(kw_only=True)
    shares: filters.Shares = field(default_factory=filters.Shares)
    columns: Sequence[str] = ()


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a `DistillTask`; as `chat.part.make_part`, with `left_out` by reason."""
    assert isinstance(task, DistillTask)
    if isinstance(task.config, ChatDistillConfig):
        is_harmony = task.render.template == HARMONY
        part: Part = (_ChatHarmony if is_harmony else _ChatPieces)(task)
    else:
        part = (_PlainRows if task.config.template == _PLAIN else _HarmonyRows)(task)
    return written(part, path)


class _Distilled(Part):
    """Leaves rows out, and counts why."""

    task: DistillTask
    is_harmony = True
    """Whether a header before an answer is of the answer, as Harmony's spans say."""

    def __init__(self, task: DistillTask) -> None:
        self.columns = task.columns or type(self).columns
        super().__init__(task)
        self.summary.setdefault("dropped_thoughts", 0)
        self.left_out: Counter[str] = Counter()
        self.summary["left_out"] = self.left_out

    def limited(self, rows: Sorted, made: dict[str, Documents]) -> dict[str, Documents]:
        """The documents that have an answer and are not too long, up to a cap."""
        kept = {}
        for split, documents in made.items():
            found = answers(documents, self.is_harmony)
            has_answer = found.final > 0
            keep = has_answer & (found.end - found.first <= self.task.config.max_length)
            kept[split] = documents if keep.all() else documents.chosen(keep)
            if not keep.all():
                reasons = np.where(has_answer, "too_long", "no_answer")[~keep]
                self.left_out.update(reasons.tolist())
                rows.keep(split, keep.tolist())
        return super().limited(rows, kept)

    def leave_out(self, rows: Sorted, reasons: Mapping[int, str]) -> None:
        """Take rows out of a batch, by their place in it."""
        self.left_out.update(reasons.values())
        for split, places in rows.places.items():
            rows.keep(split, [place not in reasons for place in places])


class _HarmonyRows(_Distilled):
    """Rows of Harmony as they stand."""

    def is_valid(self, synth_id: str) -> bool:
        """Whether a row is in the validation split."""
        return filters.is_valid(self.task.config, synth_id)

    def sorted(self, batch: pa.RecordBatch) -> Sorted:
        """The conversations of a batch that stay, by split."""
        rows = super().sorted(batch)
        config, task = self.task.config, self.task
        texts, reasons = self._texts(batch, rows), {}
        names = ("exercise", "language", "constraints")
        kinds, languages, constraints = (column(batch, name) for name in names)
        for place, each in texts.items():
            reason = filters.fault(config, constraints[place], each.answer)
            reason = reason or filters.sampled_out(
                config,
                task.shares,
                str(rows.ids[place]),
                filters.label(kinds[place]),
                filters.label(languages[place]),
            )
            if reason or not each.query.strip():
                reasons[place] = reason or "empty_query"
        self.leave_out(rows, reasons)
        self.render(batch, rows, texts)
        return rows

    def _texts(self, batch: pa.RecordBatch, rows: Sorted) -> dict[int, plain.Texts]:
        messages = batch.column(MESSAGES)
        return {
            place: plain.texts_in(conversation, messages[place].as_py())
            for split, places in rows.places.items()
            for place, conversation in zip(places, rows.conversations[split], strict=True)
        }

    def render(self, batch: pa.RecordBatch, rows: Sorted, texts: Mapping[int, plain.Texts]) -> None:
        """Render the rows that stay in another way. texts: of each place."""


class _PlainRows(_HarmonyRows):
    """Rows of Harmony with a plain system message, and the text that the question refers to."""

    is_harmony = False

    def __init__(self, task: DistillTask) -> None:
        self.tokenizer = task.tokenizer
        super().__init__(task)

    def render(self, batch: pa.RecordBatch, rows: Sorted, texts: Mapping[int, plain.Texts]) -> None:
        """Render the rows that stay; those of several questions are refused."""
        config = self.task.config
        seeds = column(batch, "query_seed_text" if config.reference else "")
        for split, places in rows.places.items():
            single = [texts[place].is_single for place in places]
            rows.refused |= {at: _SINGLE for at, one in zip(places, single, strict=True) if not one}
            rows.places[split] = list(compress(places, single))
            rows.conversations[split] = [
                self._rendered(plain.rendered(texts[place], seeds[place], config.reasoning))
                for place in rows.places[split]
            ]

    def _rendered(self, pieces: Sequence[Any]) -> Rendered:
        words = assemble.words_of(self.tokenizer, self.task.engine)
        return Rendered(pieces, sum(words.controls(p.text) for p in pieces if p.message >= 0), 0)

    assemble = PiecesPart.assemble
    count = PiecesPart.count


class _ChatRows(_Distilled, ChatPart):
    """Rows of conversations of one's own: whether one stays, its draw says."""

    def sorted(self, batch: pa.RecordBatch) -> Sorted:
        """The conversations of a batch that stay, by split."""
        rows = super().sorted(batch)
        config, every = self.task.config, filters.Shares()
        places = {place for each in rows.places.values() for place in each}
        drawn = {at: filters.sampled_out(config, every, str(rows.ids[at]), "", "") for at in places}
        self.leave_out(rows, {place: reason for place, reason in drawn.items() if reason})
        return rows


class _ChatHarmony(_ChatRows, HarmonyPart):
    """Conversations of one's own in Harmony."""


class _ChatPieces(_ChatRows, PiecesPart):
    """Conversations of one's own by another template."""

    is_harmony = False


def column(batch: pa.RecordBatch, name: str) -> list[str]:
    """The texts of a column; each is empty where there is no such column or value."""
    if name not in batch.schema.names:
        return [""] * len(batch)
    values, _ = parquet.values(batch.column(name))  # a row that is not UTF-8 is refused elsewhere
    return ["" if value is None else str(value) for value in values]

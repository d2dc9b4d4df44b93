"""The builder of one shard of conversations, and what a worker does: rows become one part.

Source: `docs/formats/chat.md#tokens`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import orjson

from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders import kd_part
from gristmill.synth.builders.kd_part import Part, Sorted, Task
from gristmill.synth.builders.kd_shard import Joiner, KDSummary, build_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.raw import HARMONY, Render
from gristmill.synth.render import assemble, jinja
from gristmill.synth.render.assemble import (
    OUTSIDE,
    TEMPLATES,
    Piece,
    Turn,
    by_turns,
    turns_of,
    with_turn_ends,
)
from gristmill.synth.render.documents import BadRow, Conversation, Documents, Shape
from gristmill.vocabularies.encode import Encoder
from gristmill.vocabularies.tokenizer import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

_HARMONY: Final = Render()
_REMEMBERED: Final = 4096
_SPLITS: Final[Mapping[str, str]] = {"train": "train", "validation": "valid"}


@dataclass(frozen=True)
class ChatTask(Task):
    """One part to make. render: how its rows are rendered. tokenizer: what encodes them."""

    render: Render = _HARMONY
    tokenizer: Tokenizer = field(kw_only=True)


def part_of(task: ChatTask) -> ChatPart:
    """The part of a task; it also counts `dropped_thoughts`."""
    return HarmonyPart(task) if task.render.template == HARMONY else PiecesPart(task)


class ChatPart(Part):
    """Renders the rows of a task. Which split a row is in, its column says."""

    columns = ("spans", "split")

    def __init__(self, task: ChatTask) -> None:
        self.render, self.tokenizer = task.render, task.tokenizer
        super().__init__(task)
        self.summary["dropped_thoughts"] = 0

    @property
    def encoder(self) -> Encoder:
        """What encodes its texts."""
        return self.tokenizer.encoder(self.task.engine)

    def sorted(self, batch: pa.RecordBatch) -> Sorted:
        """The conversations of a batch by split, and the rows that are refused."""
        names = ("messages_json", "spans", "split", "synth_id")
        texts, spans, splits, ids = (batch.column(name).to_pylist() for name in names)
        rows = Sorted(ids, {})
        for index, found in enumerate(self.read(texts, spans)):
            if isinstance(found, str):
                rows.refused[index] = found
                continue
            split = _SPLITS[splits[index]]
            rows.conversations[split] += found
            rows.places[split] += [index] * len(found)
        return rows

    def read(self, texts: Sequence[str], spans: Sequence[str]) -> Iterator[list[Any] | str]:
        """Yield the conversations of each row, or why it is refused."""
        raise NotImplementedError


class HarmonyPart(ChatPart):
    """Rows in Harmony, as those of SYNTH; some answers may not be trained on."""

    def __init__(self, task: ChatTask) -> None:
        super().__init__(task)
        self._shapes: dict[tuple[int, str], tuple[Shape, Shape]] = {}

    def read(self, texts: Sequence[str], spans: Sequence[str]) -> Iterator[list[Any] | str]:
        """Yield the conversation of each row, or why it is refused."""
        for text, codes in zip(texts, spans, strict=True):
            try:
                found = self.renderer.read(text)
            except BadRow as bad:
                yield str(bad)
                continue
            yield [found._replace(shape=self._shape(found, codes))]

    def _shape(self, found: Conversation, codes: str) -> Shape:
        """The shape of a conversation with the spans of its row."""
        key = id(found.shape), codes
        if key not in self._shapes:
            if len(self._shapes) > _REMEMBERED:
                self._shapes.clear()
            spans = np.array([*map(int, codes), 0], np.uint8)
            # With the shape that it was made of, whose id must not be given to another one.
            self._shapes[key] = found.shape, replace(found.shape, spans=spans)
        return self._shapes[key][1]


class Rendered(NamedTuple):
    """A conversation as pieces. dropped: thoughts that its template leaves out."""

    pieces: Sequence[Piece]
    control_texts: int
    dropped: int


class PiecesPart(ChatPart):
    """Rows by another template."""

    def read(self, texts: Sequence[str], spans: Sequence[str]) -> Iterator[list[Any] | str]:
        """Yield the conversations of each row, or why it is refused."""
        talks = [
            turns_of(orjson.loads(text)["messages"], codes)
            for text, codes in zip(texts, spans, strict=True)
        ]
        expanded = [list(by_turns(turns)) if self.render.expand else [turns] for turns in talks]
        made = iter(self._pieces([turns for each in expanded for turns in each]))
        for each in expanded:
            found = [next(made) for _ in each]
            refused = next((one for one in found if isinstance(one, str)), None)
            if refused is None and not found:
                refused = "no answer is trained on"
            yield found if refused is None else f"ValueError: {refused}"

    def assemble(self, conversations: Sequence[Any], engine: str) -> Documents:
        """The documents of conversations. Raises ValueError where a text cannot be encoded."""
        words = assemble.words_of(self.tokenizer, engine)
        return assemble.assemble([each.pieces for each in conversations], words)

    def count(self, conversation: Any) -> None:
        """Count the texts of control tokens, and the thoughts that are dropped."""
        self.summary["control_texts"] += conversation.control_texts
        self.summary["dropped_thoughts"] += conversation.dropped

    def _pieces(self, talks: list[list[Turn]]) -> Iterator[Rendered | str]:
        words, render = assemble.words_of(self.tokenizer, self.task.engine), self.render
        found: Iterator[tuple[list[Piece], int] | str]
        if render.path is None:
            template = TEMPLATES[render.template]
            found = ((template(talk), 0) for talk in talks)
        else:
            found = iter(
                jinja.rendered(
                    *(render.path, render.source, render.kwargs, render.date, render.thinking),
                    talks,
                    lambda pieces: with_turn_ends(pieces, words.control),
                )
            )
        for one in found:
            if isinstance(one, str):
                yield one
                continue
            bodies = (text for text, _, message in one[0] if message != OUTSIDE)
            yield Rendered(one[0], sum(map(words.controls, bodies)), one[1])


@dataclass(frozen=True)
class ChatSummary(KDSummary):
    """Counts of one shard."""

    dropped_thoughts: int = 0


class _ChatJoiner(Joiner):
    summary_type = ChatSummary
    texts = (*Joiner.texts, "dropped_thoughts")


def build_chat_shard(
    shard: Path,
    out: Path,
    config: KDConfig,
    render: Render,
    tokenizer: Tokenizer,
    parts: PartStore | None = None,
    *,
    is_own: bool = False,
    progress: Progress = SILENT,
) -> ChatSummary:
    """Write a shard of conversations, by a template, as `kd_shard.build_kd_shard`."""

    def task_of(task: kd_part.Task) -> ChatTask:
        return ChatTask(**vars(task), render=render, tokenizer=tokenizer)

    summary = build_shard(
        shard,
        out,
        config,
        parts,
        is_own=is_own,
        tokenizer=tokenizer,
        part_of=part_of,
        task_of=task_of,
        joiner_of=_ChatJoiner,
        progress=progress,
    )
    assert isinstance(summary, ChatSummary)
    return summary

"""The builder of the Megatron datasets of one shard of conversations.

See also `part.py`: some rows to a part; `../kd_shard.py`: the same for Harmony shards.
Source: `docs/formats/chat.md#tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders import kd_part
from gristmill.synth.builders.chat.part import ChatTask, make_part
from gristmill.synth.builders.kd_join import Joiner, KDSummary
from gristmill.synth.builders.kd_shard import build_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.raw.render import Render
from gristmill.vocabularies.tokenizer import Tokenizer


@dataclass(frozen=True)
class ChatSummary(KDSummary):
    """Counts of one shard.

    dropped_thoughts: thoughts to be trained on that the template left out.
    """

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
    progress: Progress = SILENT,
) -> ChatSummary:
    """Write the datasets and the trace of a shard of conversations; as `kd_shard.build_kd_shard`.

    shard: `shard_NN.parquet`. render, tokenizer: how its conversations are rendered and encoded.
    """

    def task_of(task: kd_part.Task) -> ChatTask:
        return ChatTask(**vars(task), render=render, tokenizer=tokenizer)

    summary = build_shard(
        shard,
        out,
        config,
        parts,
        tokenizer=tokenizer,
        make=make_part,
        task_of=task_of,
        joiner_of=_ChatJoiner,
        progress=progress,
    )
    assert isinstance(summary, ChatSummary)
    return summary

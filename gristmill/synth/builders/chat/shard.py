"""The builder of the Megatron datasets of one shard of conversations.

See also `part.py`: some rows to a part; `../kd_shard.py`: the same for Harmony shards.
Source: `docs/formats/chat.md#tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import Input
from gristmill.provenance import Tokenizer as NamedTokenizer
from gristmill.publish.build import Attempt, Build
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.tables import Settings
from gristmill.synth.builders import kd_part
from gristmill.synth.builders.chat.part import ChatTask, make_part
from gristmill.synth.builders.kd_join import Joiner, KDSummary
from gristmill.synth.builders.kd_shard import build_shard
from gristmill.synth.config import ChatKDConfig, KDConfig
from gristmill.synth.raw.render import Render, read_render
from gristmill.vocabularies.pinned import PLACE, PLACED, VOCABULARIES
from gristmill.vocabularies.tokenizer import Tokenizer, open_tokenizer

ASSET: Final = "chat/kd_shards"
_CONVERSATIONS, _INBOX = "chat/conversations", "chat"
_GROWTH: Final = 8


@dataclass(frozen=True)
class ChatSummary(KDSummary):
    """Counts of one shard.

    dropped_thoughts: thoughts to be trained on that the template left out.
    """

    dropped_thoughts: int = 0


def chat_build(wanted: Wanted) -> Build:
    """Returns the build of the Megatron datasets of one shard of conversations.

    Raises GristmillError if the conversations or the vocabulary are not published, or the drop with
    the recipe is gone; BadInput if `[render]` of the recipe is wrong.
    """
    root, key = wanted.root, wanted.partition
    name, _, number = key.rpartition("__")
    folder = root.artifact(*_CONVERSATIONS.split("/"), key)
    source = root.published(folder, _CONVERSATIONS, key)
    drop, _ = root.ready_drop(_INBOX, name)
    links = root.link_rule()
    render = read_render(drop, links)
    place, tokenizer, vocabulary = _tokenizer(root, render.tokenizer)
    artifact = root.artifact(*wanted.asset.place.split("/"), key)
    files = [] if render.path is None else [render.path]
    inputs = [source, vocabulary, *root.raw_inputs(artifact, files, "chat/raw", key)]
    given = wanted.config(KDConfig, filled_in={"vocabulary": place, "valid_fraction": 0.0})
    config = ChatKDConfig(
        **vars(given), render=render.recorded, eod=tokenizer.eod, ids=tokenizer.size
    )
    shard = root.root / folder / f"shard_{number}.parquet"

    def make(attempt: Attempt) -> Summary:
        resolved = replace(config, vocabulary=tokenizer.path)
        return build_chat_shard(
            shard,
            attempt.out,
            resolved,
            render,
            tokenizer,
            attempt.parts,
            progress=attempt.progress,
        )

    return wanted.build(
        artifact,
        config,
        inputs,
        make,
        tokenizer=NamedTokenizer(
            name=tokenizer.name, path=place.as_posix(), sha256=tokenizer.sha256
        ),
        space=0 if config.capped else _GROWTH * _bytes(root, folder),
    )


def _tokenizer(root: DataRoot, name: str) -> tuple[Path, Tokenizer, Input]:
    """The place of a tokenizer's file below the data root, the tokenizer, and it as an input."""
    tokenizer = open_tokenizer(root.root / PLACE / name)
    is_pinned = any(name == each.name for each in VOCABULARIES)
    found = root.published(PLACE, f"tokenizers/{name}" if is_pinned else PLACED, name)
    return tokenizer.path.relative_to(root.root), tokenizer, found


def _bytes(root: DataRoot, folder: str) -> int:
    record = provenance.read_record(provenance.record_path(root.root / folder, None, shared=False))
    return sum(item.bytes or 0 for item in record.outputs)


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
    joiners: list[Joiner] = []

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
        joined=joiners.append,
        progress=progress,
    )
    values = {field.name: getattr(summary, field.name) for field in fields(KDSummary)}
    return ChatSummary(**values, dropped_thoughts=joiners[0].dropped_thoughts)


def settings_of(root: DataRoot, partition: str) -> Settings:
    """Returns what files give for a partition: the file of its drop, else the data root's."""
    drop = root.inbox(_INBOX) / partition.rpartition("__")[0]
    return root.settings(ASSET, drop if drop.is_dir() else None)

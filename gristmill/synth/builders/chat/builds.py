"""Conversations: what the datasets of a shard are built from, how, and where they go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import Input
from gristmill.provenance import Tokenizer as NamedTokenizer
from gristmill.publish.build import Attempt, Build
from gristmill.settings.tables import Settings
from gristmill.synth.builders.chat.part import build_chat_shard
from gristmill.synth.config import ChatKDConfig, KDConfig
from gristmill.synth.raw.render import Render, read_render
from gristmill.vocabularies.pinned import PLACE, PLACED, VOCABULARIES
from gristmill.vocabularies.tokenizer import Tokenizer, open_tokenizer

_CONVERSATIONS, _INBOX = "chat/conversations", "chat"
_GROWTH: Final = 8


class Talks(NamedTuple):
    """What a shard of conversations is built from.

    shard: its file. render, tokenizer: how it is rendered. place: of the tokenizer's file, below
    the data root. bytes: of the conversations.
    """

    shard: Path
    inputs: list[Input]
    render: Render
    tokenizer: Tokenizer
    place: Path
    artifact: str
    bytes: int

    @property
    def recorded(self) -> NamedTokenizer:
        """The tokenizer as records have it."""
        own = self.tokenizer
        return NamedTokenizer(name=own.name, path=self.place.as_posix(), sha256=own.sha256)


def talks_of(wanted: Wanted) -> Talks:
    """What a partition is built from."""
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
    shard = root.root / folder / f"shard_{number}.parquet"
    return Talks(shard, inputs, render, tokenizer, place, artifact, _bytes(root, folder))


def chat_build(wanted: Wanted) -> Build:
    """Returns the build of the Megatron datasets of one shard of conversations."""
    talks = talks_of(wanted)
    tokenizer = talks.tokenizer
    given = wanted.config(KDConfig, filled_in={"vocabulary": talks.place, "valid_fraction": 0.0})
    config = ChatKDConfig(
        **vars(given), render=talks.render.recorded, eod=tokenizer.eod, ids=tokenizer.size
    )

    def make(attempt: Attempt) -> Summary:
        return build_chat_shard(
            talks.shard,
            attempt.out,
            replace(config, vocabulary=tokenizer.path),
            talks.render,
            tokenizer,
            attempt.parts,
            progress=attempt.progress,
        )

    return wanted.build(
        talks.artifact,
        config,
        talks.inputs,
        make,
        tokenizer=talks.recorded,
        space=0 if config.capped else _GROWTH * talks.bytes,
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


def is_asked(table: str, root: DataRoot, partition: str) -> bool:
    """Whether files have a table for a partition, so that it is built without being named."""
    return bool(settings_of(table, root, partition))


def settings_of(table: str, root: DataRoot, partition: str) -> Settings:
    """Returns what files give for a partition: the file of its drop, else the data root's."""
    drop = root.inbox(_INBOX) / partition.rpartition("__")[0]
    return root.settings(table, drop if drop.is_dir() else None)

"""Conversations: what the datasets of a shard are built from, how, and where they go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import Input
from gristmill.provenance import Tokenizer as NamedTokenizer
from gristmill.publish.build import Attempt, Build
from gristmill.settings.tables import Settings
from gristmill.synth.builders.chat.shard import build_chat_shard
from gristmill.synth.config import ChatKDConfig, KDConfig
from gristmill.synth.raw.render import read_render
from gristmill.vocabularies.pinned import PLACE, PLACED, VOCABULARIES
from gristmill.vocabularies.tokenizer import Tokenizer, open_tokenizer

ASSET: Final = "chat/kd_shards"
_CONVERSATIONS, _INBOX = "chat/conversations", "chat"
_GROWTH: Final = 8


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


def settings_of(root: DataRoot, partition: str) -> Settings:
    """Returns what files give for a partition: the file of its drop, else the data root's."""
    drop = root.inbox(_INBOX) / partition.rpartition("__")[0]
    return root.settings(ASSET, drop if drop.is_dir() else None)

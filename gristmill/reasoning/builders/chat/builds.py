"""Conversations: what a shard is built from, how, and where it goes."""

from __future__ import annotations

from gristmill.asset import Wanted
from gristmill.contract import NothingToBuild, Summary
from gristmill.corpora.raw.chat import drops
from gristmill.publish.build import Attempt, Build
from gristmill.reasoning.builders.chat.conversations import normalize_conversations
from gristmill.reasoning.config import ChatConfig, ConversationsConfig


def conversations_build(wanted: Wanted) -> Build:
    """Returns the build of one shard of the conversations of a drop."""
    root, key = wanted.root, wanted.partition
    folder, chat, files, account = drops.files_of(root, key)
    config = wanted.config(ConversationsConfig)
    licence = chat.corpus.licence
    if licence.training_allowed is False and not config.allow_terms:
        raise NothingToBuild(
            f"the terms of {folder.name} ({licence.id}, {licence.url}) forbid training: to build "
            "it, set allow_terms = true in [chat.conversations]"
        )
    artifact, links = root.artifact(*drops.PLACE.split("/"), key), root.link_rule()
    paths = list(dict.fromkeys(path for each in files.values() for path in each))
    paths = [*chat.read_by(int(key.rpartition("__")[2]), paths)]
    inputs = root.raw_inputs(artifact, paths, drops.RAW, key)
    given = ChatConfig(**vars(config), recipe=chat.table)

    def make(attempt: Attempt) -> Summary:
        return normalize_conversations(
            folder, files, attempt.out, key, given, links=links, progress=attempt.progress
        )

    space = sum(item.bytes or 0 for item in inputs)
    return wanted.build(artifact, given, inputs, make, space=space, account=account)

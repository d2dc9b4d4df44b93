"""The drops that splits and audits are read from: the ready ones, and their files as inputs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gristmill.contract import NothingToBuild
from gristmill.corpora.corpus import Corpus, corpus_and_split, ordered
from gristmill.corpora.raw import drops
from gristmill.data_root import DataRoot
from gristmill.inbox.account import Account
from gristmill.provenance import Input, raw_inputs
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import (
    RAW,
    SHARDS,
    is_published,
    published_partitions,
    record_path,
)
from gristmill.settings.tables import Settings

INBOX = "reasoning"


def keys_of(path: Path) -> list[str]:
    """Returns the partitions that are built from a drop: those of the splits that it has.

    path: the drop, a folder that is not refused.
    """
    return [
        f"{path.name}__{split}"
        for split in drops.splits_of(path, DataRoot(path.parents[2]).rules(INBOX)[0])
    ]


def files_of(lake: DataRoot, name: str, split: str) -> tuple[Path, Corpus, list[Path], Account]:
    """Returns a drop, its corpus, the raw files of a split in order, and their account.

    Raises NothingToBuild if the drop of the corpus is not there or not complete, or has no file of
    the split, and GristmillError if it is refused.
    """
    came = is_published(lake, names.NORMALIZED, f"{name}__{split}")
    if not came and not os.path.lexists(lake.inbox(INBOX) / name):
        raise NothingToBuild(f"there is no drop drops/{INBOX}/{name}")
    folder, account = lake.ready_drop(INBOX, name)
    corpus = drops.corpus_of(folder, lake.link_rule())
    files = drops.splits(folder, corpus, lake.link_rule()).get(split)
    if not files:
        raise NothingToBuild(f"drops/{INBOX}/{name} has no file of the split {split}")
    return folder, corpus, files, account.of(split)


def available(lake: DataRoot) -> set[str]:
    """Returns the partitions that the drops give, and those that are published."""
    dropped = {key for name in lake.taken(INBOX) for key in keys_of(lake.inbox(INBOX) / name)}
    return dropped | set(published_partitions(lake, names.NORMALIZED))


def split_inputs(lake: DataRoot, files: Iterable[Path], partition: str) -> list[Input]:
    """Returns raw files as inputs; files that the partition's record knows are not hashed again.

    lake: the data root.
    files: the files of the split.
    partition: key of the partition.

    Raises BadInput where two of them have the same bytes.
    """
    known = raw_inputs.known_hashes(record_path(lake, names.NORMALIZED, partition))
    inputs = raw_inputs.raw_inputs(lake.root, files, RAW, partition, known, lake.link_rule())
    raw_inputs.refuse_equal(lake.root, inputs)
    return inputs


def audit_inputs(lake: DataRoot, partition: str) -> list[Input]:
    """Returns the audits of a partition as inputs: its file, or none."""
    path = lake.inbox(INBOX) / names.audits(partition)
    if not os.path.lexists(path):  # a link that leads nowhere is refused below
        return []
    known = raw_inputs.known_hashes(record_path(lake, names.ALIGNMENT, partition))
    return raw_inputs.raw_inputs(lake.root, [path], RAW, partition, known, lake.link_rule())


def dropped(lake: DataRoot) -> list[str]:
    """Returns the partitions of `available` in the order of the corpora."""
    return ordered(available(lake))


def drop_of_corpus(lake: DataRoot, corpus: Corpus) -> Path | None:
    """Returns the drop of a corpus, None if it is gone."""
    folder = lake.inbox(INBOX) / corpus.name
    return folder if folder.is_dir() else None


def of_drop(table: str, root: DataRoot, key: str) -> Settings:
    """Returns what files give for a split: the file of its drop, else the data root's."""
    corpus, _ = corpus_and_split(key)
    return root.settings(table, drop_of_corpus(root, corpus))


def shard_settings(root: DataRoot, key: str) -> Settings:
    """Returns what files give for token shards; `allow` names the split's own corpus alone."""
    corpus, _ = corpus_and_split(key)
    given = of_drop(SHARDS, root, key)
    if "allow" not in given:
        return given
    own = tuple(name for name in given["allow"] if name == corpus.name)
    return Settings({**given, "allow": own}, given.file)


def refuse_terms(corpus: Corpus, allow: Sequence[str]) -> None:
    """Raise NothingToBuild if the terms of a corpus forbid training and `allow` lacks its name."""
    if corpus.licence.training_allowed is False and corpus.name not in allow:
        raise NothingToBuild(
            f"the terms of {corpus.name} ({corpus.licence.id}, {corpus.licence.url}) forbid "
            f'training: to tokenise it, set allow = ["{corpus.name}"] in [reasoning.gpt2_shards]'
        )

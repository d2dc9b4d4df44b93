"""The laws of reasoning asked about a subject, which may be a folder of another program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from gristmill.contract import Violation
from gristmill.families import Subject
from gristmill.reasoning.format.names import MANIFEST, split_index
from gristmill.reasoning.format.published import shard_splits, splits_in
from gristmill.reasoning.format.reports import dates


def normalized(subject: Subject) -> Iterator[Violation]:
    """Yields what normalised records break."""
    from gristmill.reasoning.laws.normalized import normalized_laws

    missing = subject.missing({"origins": "origins"})
    subject.leaves(MANIFEST, "reasoning/raw_manifest")
    yield from _nothing(subject, "{split}.jsonl")
    yield from normalized_laws(
        subject.folder,
        subject.partition,
        has_origins=not missing,
        table=str(subject.config.get("corpus", "")),
    )


def raw_manifest(subject: Subject) -> Iterable[Violation]:
    """Yields what the manifest of the normalised files breaks."""
    from gristmill.reasoning.laws.raw_manifest import raw_manifest_laws

    return raw_manifest_laws(subject.folder, subject.config.get("records", {}))


def shards(subject: Subject) -> Iterable[Violation]:
    """Yields what token shards break; of a folder without records, those of all splits."""
    from gristmill.reasoning.laws.shards import shard_laws

    if not subject.has_record:
        return _unrecorded_shards(subject)
    return shard_laws(subject.folder, subject.partition, sampled=subject.sampled)


def tokens(subject: Subject) -> Iterator[Violation]:
    """Yields what the dataset of a tokenizer breaks: its shards, and the manifest of them."""
    from gristmill.reasoning.format.shards import metas, read_manifest
    from gristmill.reasoning.laws.shards import shard_laws

    if not (found := shard_splits(subject.folder)):
        yield Violation("shards", ".", "there is no <corpus>/<split>/shard_*")
        return
    for corpus, split in found:
        yield from shard_laws(subject.folder, f"{corpus}__{split}", sampled=subject.sampled)
    every = [meta for each in found for meta in metas(subject.folder, *each)]
    if read_manifest(subject.folder) != sorted(every, key=lambda meta: meta.path):
        yield Violation("manifest", MANIFEST, "does not list the meta files of the shards")


def token_steps(subject: Subject) -> Iterator[Violation]:
    """Yields what the alignments in the dataset of a tokenizer break, where it has some."""
    from gristmill.reasoning.laws.alignment import alignment_laws, index_laws

    folder = subject.folder
    marks = json.loads(str(subject.config.get("steps") or "{}"))
    for key in splits_in(folder, "{split}.align.jsonl"):
        yield from alignment_laws(folder, key, marks.get(key, {}).values())
        yield from index_laws(folder, subject.inputs[0], folder, key)


def manifest(subject: Subject) -> Iterable[Violation]:
    """Yields what the manifest of the token shards breaks."""
    from gristmill.reasoning.laws.manifest import manifest_laws

    folder = subject.inputs[0] if subject.inputs else None
    return manifest_laws(subject.folder, subject.partition, folder)


def alignment(subject: Subject) -> Iterator[Violation]:
    """Yields what an alignment breaks by itself."""
    from gristmill.reasoning.laws.alignment import alignment_laws

    yield from _nothing(subject, "{split}.align.jsonl")
    labels = json.loads(str(subject.config.get("steps") or "{}")).values()
    yield from alignment_laws(subject.folder, subject.partition, labels)


def aligned_index(subject: Subject) -> Iterable[Violation]:
    """Yields where an alignment is not one of its records and of the index of their shards."""
    from gristmill.reasoning.laws.alignment import index_laws

    normalized, tokenized, *_ = subject.inputs
    return index_laws(subject.folder, normalized, tokenized, subject.partition)


def report(subject: Subject) -> Iterator[Violation]:
    """Yields what a daily report breaks."""
    from gristmill.reasoning.laws.report import report_laws

    if not subject.has_record and not dates(subject.folder):
        yield Violation("files", ".", "there is no report <date>.json")
    yield from report_laws(subject.folder, subject.partition)


def _nothing(subject: Subject, name: str) -> Iterator[Violation]:
    """A violation where no split has a file in a folder without a record."""
    if not subject.has_record and not splits_in(subject.folder, name):
        yield Violation("files", ".", f"there is no <corpus>/{name.format(split='<split>')}")


def _unrecorded_shards(subject: Subject) -> Iterator[Violation]:
    """The laws of all splits of a folder without records; those without an index are others'."""
    from gristmill.reasoning.laws.shards import other_shard_laws, shard_laws

    subject.leaves(MANIFEST, "reasoning/manifest")
    if not (found := shard_splits(subject.folder)):
        yield Violation("shards", ".", "there is no <corpus>/<split>/shard_*.pt")
    for corpus, split in found:
        if subject.missing({split_index(corpus, split): f"index and tiling of {corpus}/{split}"}):
            yield from other_shard_laws(subject.folder, corpus, split)
        else:
            yield from shard_laws(subject.folder, f"{corpus}__{split}")

"""`manifest.json` and `index.jsonl` of all splits. Source: `docs/formats/reasoning.md#manifest`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, FileNote, GristmillError, Summary
from gristmill.corpora.corpus import corpus_and_split
from gristmill.hashing import HashedFile
from gristmill.reasoning.format import names
from gristmill.reasoning.format.shards import Meta, manifest_entries, metas
from gristmill.run.progress import SILENT, Progress

_READ_BYTES: Final = 1 << 20
_EQUAL: Final = ("seq_len", "world_size", "tokenizer_sha256")
"""What all shards of one folder must have in common."""


@dataclass(frozen=True)
class ManifestSummary(Summary):
    """Sums over all splits."""

    splits: int
    shards: int
    sequences: int
    examples: int
    text_tokens: int
    eos_tokens: int
    pad_tokens: int


def write_manifest(
    tokenized: Path, out: Path, partitions: Sequence[str], *, progress: Progress = SILENT
) -> ManifestSummary:
    """Write `manifest.json` and `index.jsonl`.

    tokenized: the folder of all shards.
    out: folder to write, which must not exist.
    partitions: keys of the published splits, in any order.
    progress: gets the stage "manifest", in files: one for each split.

    Raises GristmillError where there is no split, or where two shards differ in seq_len, world
    size or vocabulary, and BadInput for a damaged meta file or an index that is gone. Memory
    grows with the shards of one split alone.
    """
    if not partitions:
        raise GristmillError(f"{tokenized}: no split is published: build shards before a manifest")
    folders = sorted((corpus.name, split) for corpus, split in map(corpus_and_split, partitions))
    out.mkdir(parents=True)
    sums: dict[str, int] = dict.fromkeys(("shards", "sequences", *_COUNTED), 0)
    with HashedFile(out / names.MANIFEST) as manifest:
        for entry in manifest_entries(_summed(_checked(all_metas(tokenized, folders)), sums)):
            manifest.write(entry)
    examples = 0
    with (
        HashedFile(out / names.INDEX) as index,
        progress.stage("manifest", "files", len(folders)) as stage,
    ):
        for corpus, split in folders:
            for data in _read(tokenized / names.split_index(corpus, split)):
                examples += data.count(b"\n")
                index.write(data)
            stage.advance(1)
    files = {
        names.MANIFEST: _note(manifest, sums["shards"]),
        names.INDEX: _note(index, examples),
    }
    return ManifestSummary(files=files, splits=len(folders), examples=examples, **sums)


_COUNTED: Final = ("text_tokens", "eos_tokens", "pad_tokens")


def all_metas(tokenized: Path, folders: Iterable[tuple[str, str]]) -> Iterator[Meta]:
    """Yield the metas of some splits in the order of their paths. Raises as `read_meta`."""
    for corpus, split in folders:
        yield from metas(tokenized, corpus, split)


def different(one: Meta, other: Meta) -> str | None:
    """What two shards of one folder must not differ in, None where they do not."""
    for name in _EQUAL:
        if getattr(one, name) != getattr(other, name):
            return (
                f"{other.path} has {name} {getattr(other, name)}, {one.path} has "
                f"{getattr(one, name)}: build all splits with one config, "
                "set in [reasoning.gpt2_shards] of the data root's gristmill.toml, not in a drop"
            )
    return None


def _checked(found: Iterable[Meta]) -> Iterator[Meta]:
    first = None
    for meta in found:
        first = first or meta
        if problem := different(first, meta):
            raise GristmillError(f"no manifest over shards of several kinds: {problem}")
        yield meta


def _summed(found: Iterable[Meta], sums: dict[str, int]) -> Iterator[Meta]:
    for meta in found:
        sums["shards"] += 1
        sums["sequences"] += meta.num_sequences
        for name in _COUNTED:
            sums[name] += getattr(meta, name)
        yield meta


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb", buffering=0) as file:
            while data := file.read(_READ_BYTES):
                yield data
    except FileNotFoundError as error:
        raise BadInput(path, "is gone: build the shards of this split again") from error


def _note(file: HashedFile, rows: int) -> FileNote:
    return FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)

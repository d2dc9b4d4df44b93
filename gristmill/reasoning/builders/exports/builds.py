"""Spans and exports: what they are built from, how, and where they go."""

from __future__ import annotations

from contextlib import suppress

from gristmill.asset import Wanted
from gristmill.contract import BadInput, NothingToBuild, Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import Tokenizer, read_record
from gristmill.publish.build import Attempt, Build, bytes_of
from gristmill.reasoning.builders.exports.files import write_exports
from gristmill.reasoning.builders.exports.spans import has_annotations, write_spans
from gristmill.reasoning.config import ExportsConfig, SpansConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import EXPORTS, NORMALIZED, SPANS, TOKENS, shard_splits
from gristmill.reasoning.raw.recipes import tokenizer_input
from gristmill.vocabularies.pinned import PLACE
from gristmill.vocabularies.tokenizer import open_tokenizer


def spans_build(wanted: Wanted) -> Build:
    """Returns the build of the spans of arithmetic of a split."""
    root, key, config = wanted.root, wanted.partition, wanted.config(SpansConfig)
    normalized = root.published(names.NORMALIZED, NORMALIZED, key)
    # Of a damaged file the run says what is wrong, once it has compared it with its record.
    with suppress(OSError, BadInput):
        if not has_annotations(root.root / names.NORMALIZED, key):
            raise NothingToBuild("the split has no annotation as <<48/2=24>>")
    inputs = [normalized, tokenizer_input(root, config.tokenizer)]
    own = open_tokenizer(root.root / PLACE / config.tokenizer)

    def make(attempt: Attempt) -> Summary:
        folder = root.root / names.NORMALIZED
        return write_spans(folder, key, attempt.out, config, own, attempt.progress)

    path = own.path.relative_to(root.root).as_posix()
    return wanted.build(
        names.SPANS,
        config,
        inputs,
        make,
        shared=key,
        tokenizer=Tokenizer(name=own.name, path=path, sha256=own.sha256),
    )


def exports_build(wanted: Wanted) -> Build:
    """Returns the build of a token dataset in the formats of other programs."""
    root, key, config = wanted.root, wanted.partition, wanted.config(ExportsConfig)
    if not config.formats:
        raise NothingToBuild("no format is asked for: set formats of [reasoning.exports]")
    inputs = [root.published(f"{names.TOKENS}/{key}", TOKENS, key)]
    dataset = root.root / names.TOKENS / key
    inputs += [
        root.published(names.NORMALIZED, NORMALIZED, f"{corpus}__{split}")
        for corpus, split in shard_splits(dataset)
    ]

    def make(attempt: Attempt) -> Summary:
        normalized = root.root / names.NORMALIZED
        folders = (dataset, normalized, root.root)
        return write_exports(*folders, attempt.out, config, attempt.progress)

    size = bytes_of(*dataset.rglob("shard_*"))
    return wanted.build(
        f"{names.EXPORTS}/{key}",
        config,
        inputs,
        make,
        tokenizer=read_record(dataset / "provenance.json").tokenizer,
        space=2 * len(config.formats) * size,
    )


def wants_spans(root: DataRoot, _: str) -> bool:
    """Whether files ask for spans, for which all records of a split are read."""
    return bool(root.settings(SPANS))


def wants_exports(root: DataRoot, _: str) -> bool:
    """Whether files ask for a format of token datasets."""
    return bool(root.settings(EXPORTS).get("formats"))

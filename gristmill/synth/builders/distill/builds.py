"""Datasets of token ids, labels and spans: what they are built from, how, and where they go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import Summary
from gristmill.data_root import DataRoot
from gristmill.provenance import Tokenizer as NamedTokenizer
from gristmill.publish.build import Attempt, Build
from gristmill.synth.builders.chat.builds import talks_of
from gristmill.synth.builders.distill.shard import build_distill
from gristmill.synth.builders.drop_in_use import FOLDER, HARMONY, record_path
from gristmill.synth.builders.harmony_shard import shard_name
from gristmill.synth.config import ChatDistillConfig, DistillConfig
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned

DATASET: Final = "pleias_synth"
# A token takes 9 bytes in a row, and its row in a part half of that.
_GROWTH: Final = 14


def distill_build(wanted: Wanted) -> Build:
    """Returns the build of the dataset of one Harmony shard."""
    root, number = wanted.root, wanted.partition
    source = root.published(FOLDER, HARMONY, number)
    place = Path("tokenizer") / O200K.relative
    vocabulary = root.published("tokenizer", f"tokenizers/{O200K.name}", O200K.name)
    config = wanted.config(DistillConfig, filled_in={"vocabulary": place})
    resolved = replace(config, vocabulary=root.root / place)
    tokenizer = of_pinned(O200K, resolved.vocabulary)

    def make(attempt: Attempt) -> Summary:
        return build_distill(
            root.root / FOLDER / shard_name(number),
            attempt.out,
            resolved,
            tokenizer,
            attempt.parts,
            dataset=DATASET,
            progress=attempt.progress,
        )

    return wanted.build(
        root.artifact(*wanted.asset.place.split("/"), number),
        config,
        [source, vocabulary],
        make,
        tokenizer=NamedTokenizer(name=O200K.name, path=place.as_posix(), sha256=O200K.sha256),
        space=0 if config.capped else _GROWTH * _bytes(root, number),
    )


def _bytes(root: DataRoot, number: str) -> int:
    record = provenance.read_record(record_path(root, FOLDER, number))
    return sum(item.bytes or 0 for item in record.outputs)


def chat_distill_build(wanted: Wanted) -> Build:
    """Returns the build of the dataset of one shard of conversations."""
    talks = talks_of(wanted)
    given = wanted.config(DistillConfig, filled_in={"vocabulary": talks.place})
    config = ChatDistillConfig(**vars(given), render=talks.render.recorded)

    def make(attempt: Attempt) -> Summary:
        return build_distill(
            talks.shard,
            attempt.out,
            replace(config, vocabulary=talks.tokenizer.path),
            talks.tokenizer,
            attempt.parts,
            dataset=wanted.partition.rpartition("__")[0],
            render=talks.render,
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

"""A data root with one split: raw drop, normalised, tokenised; published as the assets do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.provenance import Input, Tokenizer, raw_inputs
from gristmill.publish.build import Build, Published
from gristmill.publish.publish import publish
from gristmill.reasoning.builders.manifest import write_manifest
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import NormalizeConfig, TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.laws.manifest import manifest_laws
from gristmill.reasoning.laws.shards import shard_laws
from gristmill.vocabularies.pinned import GPT2

PARTITION = "gsm8k__train"


def write_drop(root: Path, records: Iterable[Mapping[str, Any]], corpus: str = "gsm8k") -> None:
    """A drop of two files in the seed's form; the second half of the records in the second."""
    drop = root / "drops" / "reasoning" / corpus
    drop.mkdir(parents=True)
    keys = {"question": "", "answer": ""}
    lines = [json.dumps({**keys, **record}, ensure_ascii=False) + "\n" for record in records]
    half = (len(lines) + 1) // 2
    for number, some in enumerate((lines[:half], lines[half:])):
        text = "".join(some)
        (drop / f"train-0000{number}-of-00002.jsonl").write_text(text, encoding="utf-8")


def place_vocabulary(root: Path, vocabulary: Path) -> Path:
    """The vocabulary where `find` looks for it in a data root."""
    path = root / "tokenizer" / GPT2.relative
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(vocabulary, path)
    return path


def normalized_build(root: Path, partition: str = PARTITION) -> Build:
    corpus, split = partition.split("__")
    drop = root / "drops" / "reasoning" / corpus
    files = sorted(drop.iterdir())
    config = NormalizeConfig()
    return Build(
        root=root,
        artifact=names.NORMALIZED,
        asset="reasoning/normalized",
        partition=partition,
        code_version=config.CODE_VERSION,
        config=config,
        inputs=raw_inputs.raw_inputs(root, files, "reasoning/raw", corpus, known={}),
        make=lambda attempt: normalize(drop, attempt.out, config, split=split),
        shared=True,
    )


def shards_build(root: Path, config: TokenizeConfig, partition: str = PARTITION) -> Build:
    corpus, split = partition.split("__")
    jsonl = root / names.NORMALIZED / names.normalized(corpus, split)
    return Build(
        root=root,
        artifact=names.TOKENIZED,
        asset="reasoning/gpt2_shards",
        partition=partition,
        code_version=config.CODE_VERSION,
        config=config,
        inputs=[_published(root, names.NORMALIZED, "reasoning/normalized", partition)],
        make=lambda attempt: tokenize(
            jsonl, attempt.out, config, attempt.parts, progress=attempt.progress
        ),
        laws=lambda out: shard_laws(out, partition, sampled=True),
        shared=True,
        tokenizer=Tokenizer(name=GPT2.name, path=GPT2.relative, sha256=GPT2.sha256),
    )


def manifest_build(root: Path, partitions: list[str]) -> Build:
    tokenized = root / names.TOKENIZED
    return Build(
        root=root,
        artifact=names.TOKENIZED,
        asset="reasoning/manifest",
        partition=names.MANIFEST_RECORD,
        code_version="1",
        config=NormalizeConfig(),
        inputs=[
            _published(root, names.TOKENIZED, "reasoning/gpt2_shards", each) for each in partitions
        ],
        make=lambda attempt: write_manifest(tokenized, attempt.out, partitions),
        laws=lambda out: manifest_laws(out, names.MANIFEST_RECORD, tokenized),
        shared=True,
    )


def published(root: Path, config: TokenizeConfig, **changes: Any) -> Published:
    """Publish the normalised file, the shards and the manifest; the shards as published."""
    publish(normalized_build(root))
    shards = publish(shards_build(root, replace(config, **changes)))
    publish(manifest_build(root, [PARTITION]))
    return shards


def _published(root: Path, folder: str, asset: str, partition: str) -> Input:
    record = provenance.read_record(provenance.record_path(root / folder, partition, shared=True))
    return Input(asset=asset, partition=partition, path=folder, data_version=record.data_version)

"""The builds of one split: normalised records, token shards, alignment.

See also `dataset_builds.py`: manifests and reports, which take all splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from assets import configs
from assets.reasoning import drops
from assets.reasoning.choices import drop_of_corpus
from assets.reasoning.records import (
    ALIGNMENT,
    NORMALIZED,
    SHARDS,
    is_published,
)
from gristmill import families
from gristmill.contract import NothingToBuild, Summary, Violation
from gristmill.families import Subject
from gristmill.provenance import Input, Tokenizer
from gristmill.publish.build import Attempt, Build
from gristmill.reasoning.config import AlignConfig, NormalizeConfig, TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import Corpus, corpus_and_split
from gristmill.vocabularies.pinned import GPT2
from resources import Lake

# Ids take 1.3 times the text, the index 0.7 times; the parts take the same once more.
_GROWTH = 4

VOCABULARY = Path("tokenizer") / GPT2.relative
"""The published vocabulary, relative to the data root."""


def normalized_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of the normalised records of a split.

    lake: the data root.
    run: the launchpad's config.
    key: corpus and split, as `gsm8k__test`.

    Raises NothingToBuild if no drop has the split, BadInput if the drop or a setting is refused.
    """
    from gristmill.reasoning.builders.normalize import normalize

    corpus, split = corpus_and_split(str(key))
    folder, files, account = drops.files_of(lake, corpus, split)
    config = configs.resolve(NormalizeConfig, lake.settings(NORMALIZED, folder), run)
    links = lake.link_rule()
    inputs = drops.split_inputs(lake, files, str(key))

    def make(attempt: Attempt) -> Summary:
        return normalize(
            folder,
            attempt.out,
            config,
            corpus=corpus.name,
            split=split,
            links=links,
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=names.NORMALIZED,
        asset=NORMALIZED,
        partition=key,
        code_version=NormalizeConfig.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        laws=_laws(lake, NORMALIZED, str(key)),
        shared=True,
        space=sum(item.bytes or 0 for item in inputs),
        account=account,
    )


def shards_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of the token shards of a split, of all ranks.

    lake: the data root.
    run: the launchpad's config.
    key: corpus and split, as `gsm8k__test`.

    Raises NothingToBuild if the terms of the corpus forbid training and no setting allows it, or
    if the split has no drop; GristmillError if the normalised records or the vocabulary are not
    published.
    """
    from gristmill.reasoning.builders.shards import tokenize

    corpus, split = corpus_and_split(str(key))
    config = shards_config(lake, run, corpus)
    refuse_terms(corpus, config.allow)
    inputs = [lake.published(names.NORMALIZED, NORMALIZED, key), vocabulary_input(lake)]
    jsonl = lake.root / names.NORMALIZED / names.normalized(corpus.name, split)
    resolved = replace(config, vocabulary=lake.root / VOCABULARY)

    def make(attempt: Attempt) -> Summary:
        return tokenize(
            jsonl,
            attempt.out,
            resolved,
            attempt.parts,
            corpus=corpus.name,
            split=split,
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=names.TOKENIZED,
        asset=SHARDS,
        partition=key,
        code_version=TokenizeConfig.CODE_VERSION,
        config=config,
        inputs=inputs,
        make=make,
        # The builder hashed the files, and encoded the texts: the laws encode a sample again.
        laws=_laws(lake, SHARDS, str(key), inputs, sampled=True),
        shared=True,
        tokenizer=tokenizer(),
        space=_GROWTH * jsonl.stat().st_size if jsonl.is_file() else 0,
    )


def alignment_build(lake: Lake, run: BaseModel, key: str | None) -> Build:
    """Returns the build of the alignment of a split.

    lake: the data root.
    run: the launchpad's config.
    key: corpus and split, as `gsm8k__test`.

    Raises NothingToBuild if the split has no token shards because the terms of its corpus forbid
    training; GristmillError if the shards are not published for another reason.
    """
    from gristmill.reasoning.builders.align import align

    corpus, split = corpus_and_split(str(key))
    if not is_published(lake, names.TOKENIZED, str(key)):
        refuse_terms(corpus, lake.settings(SHARDS, drop_of_corpus(lake, corpus)).get("allow", ()))
    inputs = [
        lake.published(names.NORMALIZED, NORMALIZED, key),
        lake.published(names.TOKENIZED, SHARDS, key),
        vocabulary_input(lake),
    ]
    audits = drops.audit_inputs(lake, str(key))
    jsonl = lake.root / names.NORMALIZED / names.normalized(corpus.name, split)
    config = configs.resolve(
        AlignConfig,
        lake.settings(ALIGNMENT, drop_of_corpus(lake, corpus)),
        run,
        filled_in={"vocabulary": VOCABULARY},
    )
    resolved = replace(config, vocabulary=lake.root / VOCABULARY)

    def make(attempt: Attempt) -> Summary:
        return align(
            jsonl,
            lake.root / names.TOKENIZED,
            attempt.out,
            resolved,
            attempt.parts,
            audits=lake.root / str(audits[0].path) if audits else None,
            progress=attempt.progress,
        )

    return Build(
        root=lake.root,
        artifact=names.ALIGNMENT,
        asset=ALIGNMENT,
        partition=key,
        code_version=AlignConfig.CODE_VERSION,
        config=config,
        inputs=[*inputs, *audits],
        make=make,
        laws=_laws(lake, ALIGNMENT, str(key), inputs),
        shared=True,
        tokenizer=tokenizer(),
    )


def shards_config(lake: Lake, run: BaseModel, corpus: Corpus) -> TokenizeConfig:
    """Returns the config of a split's token shards.

    `allow` keeps this corpus alone, so that a setting for another one rebuilds nothing.
    """
    config = configs.resolve(
        TokenizeConfig,
        lake.settings(SHARDS, drop_of_corpus(lake, corpus)),
        run,
        filled_in={"vocabulary": VOCABULARY},
    )
    return replace(config, allow=tuple(name for name in config.allow if name == corpus.name))


def refuse_terms(corpus: Corpus, allow: Sequence[str]) -> None:
    """Raise NothingToBuild if the terms of a corpus forbid training and `allow` lacks its name."""
    if corpus.licence.training_allowed is False and corpus.name not in allow:
        raise NothingToBuild(
            f"the terms of {corpus.name} ({corpus.licence.id}, {corpus.licence.url}) forbid "
            f'training: to tokenise it, set allow = ["{corpus.name}"] in [reasoning.gpt2_shards]'
        )


def vocabulary_input(lake: Lake) -> Input:
    """Returns the published vocabulary as an input. Raises NotBuilt if it is not published."""
    return lake.published("tokenizer", f"tokenizers/{GPT2.name}", GPT2.name)


def tokenizer() -> Tokenizer:
    """Returns the vocabulary as records name it."""
    return Tokenizer(name=GPT2.name, path=VOCABULARY.as_posix(), sha256=GPT2.sha256)


def _laws(
    lake: Lake, asset: str, partition: str, inputs: Sequence[Input] = (), *, sampled: bool = False
) -> Callable[[Path], Iterable[Violation]]:
    """The laws of an asset for a staged folder, with the folders of published inputs."""
    folders = [lake.root / str(item.path) for item in inputs]
    return lambda out: families.check(asset, Subject(out, partition, folders, sampled=sampled))

"""Reasoning: what its artifacts are built from, how, and where they go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill import provenance
from gristmill.asset import Wanted
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.split_file import files
from gristmill.data_root import DataRoot
from gristmill.provenance import Input, Tokenizer, read_record
from gristmill.publish.build import Build, LeftOut, ManifestConfig, bytes_of
from gristmill.reasoning import raw
from gristmill.reasoning.config import (
    ALIGNED,
    AlignConfig,
    ChatConfig,
    ConversationsConfig,
    CorpusAlignConfig,
    ExportsConfig,
    LeaksConfig,
    ReportConfig,
    SpansConfig,
    TokenizeConfig,
    TokensConfig,
)
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.format.published import (
    EVALS,
    EXPORTS,
    LEAKS,
    NORMALIZED,
    REPORT,
    REPORTED,
    SHARDS,
    SPANS,
    TOKENS,
    corpus_of,
    is_published,
    published_inputs,
    published_partitions,
    published_records,
    record_path,
    report_inputs,
    shard_splits,
)
from gristmill.reasoning.raw import tokenizer_input
from gristmill.takedowns.left_out import left_out
from gristmill.vocabularies.pinned import GPT2, PLACE, TokenizerFile

if TYPE_CHECKING:
    from gristmill.publish.publish import Ranks
    from gristmill.reasoning.builders.shards import Form, Split

# Ids take 1.3 times the text, the index 0.7 times; the parts take the same once more.
_GROWTH = 4

VOCABULARY: Final = Path("tokenizer") / GPT2.relative
"""The published vocabulary, relative to the data root."""
_TOKENIZER: Final = Tokenizer(name=GPT2.name, path=VOCABULARY.as_posix(), sha256=GPT2.sha256)


def normalized_build(wanted: Wanted) -> Build:
    """Returns the build of the normalised records of a split."""
    from gristmill.reasoning.builders.leaks import NO_TRAINING, dropped
    from gristmill.reasoning.builders.normalize import normalize

    root, key = wanted.root, wanted.partition
    corpus, split = corpus_and_split(key)
    folder, corpus, files, account = raw.files_of(root, corpus.name, split)
    config, links, left = raw.config_of(wanted, corpus, folder), root.link_rule(), None
    forgotten = raw.forgotten(root, folder, corpus, split)
    inputs = raw.split_inputs(root, [*files, *([forgotten.path] if forgotten else [])], key)
    if split not in NO_TRAINING:
        left = dropped(wanted, record_path(root, names.NORMALIZED, key))
    if left is not None:
        config, inputs = replace(config, leaks=left.config), [*inputs, *left.inputs]

    return wanted.build(
        names.NORMALIZED,
        config,
        inputs,
        lambda attempt: normalize(
            folder,
            attempt.out,
            config,
            corpus=corpus.name,
            split=split,
            links=links,
            parts=lambda: attempt.parts,
            forgotten=forgotten,
            leaks=left.found(attempt.out.parent) if left else None,
            progress=attempt.progress,
        ),
        left=LeftOut([], forgotten.by_date, root.link_rule) if forgotten else None,
        shared=key,
        space=2 * sum(item.bytes or 0 for item in inputs),
        account=account,
        split=split,
    )


def shards_build(wanted: Wanted) -> Build:
    """Returns the build of the token shards of a split, of all ranks."""
    from gristmill.reasoning.builders.shards import tokenize

    root, key = wanted.root, wanted.partition
    _, split = corpus_and_split(key)
    corpus, config = corpus_of(root.root, key), _shards_config(wanted)
    raw.refuse_terms(corpus, config.allow)
    inputs = [root.published(names.NORMALIZED, NORMALIZED, key), _vocabulary_input(root)]
    jsonl = _jsonl(wanted)
    resolved = replace(config, vocabulary=root.root / VOCABULARY)

    return wanted.build(
        names.TOKENIZED,
        config,
        inputs,
        lambda attempt: tokenize(
            jsonl,
            attempt.out,
            resolved,
            attempt.parts,
            corpus=corpus.name,
            split=split,
            progress=attempt.progress,
        ),
        shared=key,
        # The builder has just hashed the files.
        sampled=True,
        tokenizer=_TOKENIZER,
        space=_GROWTH * bytes_of(*files(jsonl)),
    )


def shard_ranks(wanted: Wanted) -> Ranks:
    """Returns the parts of a split's token shards by rank."""
    from gristmill.reasoning.builders.shards import SplitRanks

    config = _shards_config(wanted)
    return SplitRanks(_jsonl(wanted), replace(config, vocabulary=wanted.root.root / VOCABULARY))


def tokens_build(wanted: Wanted) -> Build:
    """Returns the build of a dataset of any tokenizer."""
    from gristmill.reasoning.builders.shards import tokenize_dataset

    splits, config, form, inputs = _dataset(wanted)
    for each in splits:
        raw.refuse_terms(corpus_of(wanted.root.root, f"{each.corpus}__{each.split}"), config.allow)

    own = _named(form.tokenizer, wanted.root)
    return wanted.build(
        form.folder,
        replace(config, vocabulary=Path(own.path)),
        inputs,
        lambda attempt: tokenize_dataset(
            splits, attempt.out, config, form, attempt.parts, attempt.progress
        ),
        sampled=True,
        tokenizer=own,
        space=_GROWTH * bytes_of(*(path for each in splits for path in files(each.jsonl))),
    )


def tokens_ranks(wanted: Wanted) -> Ranks:
    """Returns the parts of a dataset by rank."""
    from gristmill.reasoning.builders.shards import DatasetRanks

    return DatasetRanks(*_dataset(wanted)[:3])


def _dataset(wanted: Wanted) -> tuple[list[Split], TokensConfig, Form, list[Input]]:
    from gristmill.reasoning.builders.shards import Split, dataset_form
    from gristmill.vocabularies.tokenizer import open_tokenizer

    root, recipe = wanted.root.root, raw.recipe_of(wanted.root, wanted.partition)
    inputs = raw.dataset_inputs(wanted.root, recipe)
    tokenizer = open_tokenizer(root / PLACE / recipe["tokenizer"])
    config = wanted.config(TokensConfig, recipe, filled_in={"vocabulary": tokenizer.path})
    keys = [str(each.partition).split("__") for each in inputs[:-1]]
    if ALIGNED in config.outputs:
        config = replace(config, steps=raw.marks_of(recipe, tokenizer, root, keys))
    splits = [Split(root / names.NORMALIZED / names.normalized(*key), *key) for key in keys]
    return splits, config, dataset_form(config, tokenizer, wanted.partition), inputs


def alignment_build(wanted: Wanted) -> Build:
    """Returns the build of the alignment of a split."""
    from gristmill.reasoning.builders.align import align

    root, key = wanted.root, wanted.partition
    corpus = corpus_of(root.root, key)
    if corpus.is_text and not wanted.is_comparison:
        why = f"{corpus.name} is plain text, without steps"
        if is_published(root, names.ALIGNMENT, key):
            why += f": gristmill remove {root.root / names.ALIGNMENT} --partition {key}"
        raise NothingToBuild(why)
    if not is_published(root, names.TOKENIZED, key):
        raw.refuse_terms(corpus, raw.of_drop(SHARDS, root, key).get("allow", ()))
    inputs = [
        root.published(names.NORMALIZED, NORMALIZED, key),
        root.published(names.TOKENIZED, SHARDS, key),
        _vocabulary_input(root),
    ]
    audits = raw.audit_inputs(root, key)
    jsonl = _jsonl(wanted)
    config = wanted.config(AlignConfig, filled_in={"vocabulary": VOCABULARY})
    if marks := corpus.steps:
        config = CorpusAlignConfig(**vars(config), steps=json.dumps(marks, sort_keys=True))
    resolved = replace(config, vocabulary=root.root / VOCABULARY)

    return wanted.build(
        names.ALIGNMENT,
        config,
        [*inputs, *audits],
        lambda attempt: align(
            jsonl,
            root.root / names.TOKENIZED,
            attempt.out,
            resolved,
            attempt.parts,
            audits=root.root / str(audits[0].path) if audits else None,
            progress=attempt.progress,
        ),
        shared=key,
        tokenizer=_TOKENIZER,
        space=_GROWTH * bytes_of(*files(jsonl)),
    )


def raw_manifest_build(wanted: Wanted) -> Build:
    """Returns the build of the manifest of the normalised files."""
    from gristmill.reasoning.builders.manifest import write_raw_manifest

    root = wanted.root
    records = published_records(root, names.NORMALIZED, "no split is normalised")
    previous = _previous_manifest(root)

    return wanted.build(
        names.NORMALIZED,
        ManifestConfig.of(records),
        published_inputs(root, names.NORMALIZED, NORMALIZED),
        lambda attempt: write_raw_manifest(
            [record.model_dump(mode="json") for record in records],
            previous,
            attempt.out,
            generated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        ),
        shared=names.MANIFEST_RECORD,
    )


def _previous_manifest(root: DataRoot) -> Mapping[str, Any] | None:
    """The raw manifest that is published, whose entries without a record stay.

    None where there is none, and where it is damaged: nothing wrong may be taken over.
    """
    folder = root.root / names.NORMALIZED
    try:
        data = (folder / names.MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    path = record_path(root, names.NORMALIZED, names.MANIFEST_RECORD)
    if path.exists():
        try:
            outputs = provenance.read_record(path).outputs
        except GristmillError:
            return None
        sha256 = hashlib.sha256(data).hexdigest()
        if (names.MANIFEST, sha256) not in {(item.path, item.sha256) for item in outputs}:
            return None
    try:
        previous = json.loads(data)
    except ValueError as error:
        raise BadInput(folder / names.MANIFEST, f"is not JSON: {error}: remove the file") from error
    if not isinstance(previous, dict):
        raise BadInput(folder / names.MANIFEST, "is no manifest: remove the file")
    return previous


def manifest_build(wanted: Wanted) -> Build:
    """Returns the build of the manifest of the token shards, and of the index of all splits."""
    from gristmill.reasoning.builders.manifest import write_manifest

    root = wanted.root
    records = published_records(root, names.TOKENIZED, "no split has token shards")
    folder = root.root / names.TOKENIZED
    partitions = published_partitions(root, names.TOKENIZED)

    return wanted.build(
        names.TOKENIZED,
        ManifestConfig.of(records),
        published_inputs(root, names.TOKENIZED, SHARDS),
        lambda attempt: write_manifest(folder, attempt.out, partitions, progress=attempt.progress),
        shared=names.MANIFEST_RECORD,
        tokenizer=_TOKENIZER,
    )


def report_build(wanted: Wanted) -> Build:
    """Returns the build of a day's report on everything that is published; it names the run.

    Only GPT-2's shards need the vocabulary, and it is an input where it is published.
    """
    from gristmill.reasoning.builders.report import coverage_report

    root, date, now = wanted.root, wanted.partition, today().isoformat()
    if date != now and not wanted.is_comparison:
        raise NothingToBuild(
            f"a report describes what is published now, so that only {now} can be built (the "
            "current day in UTC)"
        )
    inputs = report_inputs(root)
    notes = root.without_record(*REPORTED)
    if not inputs:
        raise NothingToBuild("\n".join(["no split is published", *notes]))
    config = wanted.config(ReportConfig, filled_in={"vocabulary": VOCABULARY})
    baseline, before = _baseline(root, config.baseline, date)
    resolved = replace(config, vocabulary=root.root / VOCABULARY)
    if has_vocabulary := _vocabulary_is_wanted(root):
        inputs.append(_vocabulary_input(root))

    return wanted.build(
        names.REPORTS,
        config,
        [*inputs, *before],
        lambda attempt: coverage_report(
            root.root, attempt.out, resolved, date=date, baseline=baseline, run_id=wanted.run
        ),
        shared=date,
        tokenizer=_TOKENIZER if has_vocabulary else None,
        remarks=notes,
    )


def today() -> date:
    """Returns the current day in UTC."""
    return datetime.now(UTC).date()


def _baseline(
    root: DataRoot, chosen: str | None, date: str
) -> tuple[dict[str, Any] | None, list[Input]]:
    """The report that drift is measured against, and that report as an input.

    A report of the same day, which the build replaces, is not an input. Before there is one, a
    report whose own day is the baseline is compared with nothing.
    """
    if chosen is None:
        return None, []
    found = is_published(root, names.REPORTS, chosen)
    if chosen == date:
        return (reports.read(reports.path(root.root / names.REPORTS, date)) if found else None), []
    if not found:
        raise BadInput(
            root.settings(REPORT).file,
            f'[reasoning.qc_report] baseline = "{chosen}": there is no report {chosen}.json: name '
            "the day of a report that is published",
        )
    before = root.published(names.REPORTS, REPORT, chosen)
    return reports.read(reports.path(root.root / names.REPORTS, chosen)), [before]


def leaks_build(wanted: Wanted) -> Build:
    """Returns the build of the audit of an evaluation set.

    The texts are no inputs, which would have to stand as they were: the config has their digest, so
    that a text that is new, changed or gone makes the audit out of date.
    """
    from gristmill.leaks import texts
    from gristmill.reasoning.builders.leaks import write_leaks

    root, name = wanted.root, wanted.partition
    place, inputs, account = f"{LEAKS}/{name}", list[Input](), None
    is_split = name in texts.built_sets(root.root)
    if is_split:
        inputs.append(root.published(names.NORMALIZED, NORMALIZED, name))
    if not is_split or (root.inbox(texts.EVALS) / name).is_dir():
        drop, account = root.ready_drop(texts.EVALS, name)
        files = [drop / each for each in account.taken[""]]
        inputs += root.raw_inputs(place, files, EVALS, name)
    sets, parts = texts.sets_of(root.root, [name]), texts.built_parts(root.root)
    every = repr([(each.place, each.name, each.key) for each in parts])
    config = LeaksConfig(
        " ".join(each.digest for each in sets), hashlib.sha256(every.encode()).hexdigest()
    )
    return wanted.build(
        place,
        config,
        inputs,
        lambda attempt: write_leaks(root.root, attempt.out, sets, parts, attempt.progress),
        account=account,
    )


def evaluation_sets(root: DataRoot) -> list[str]:
    """Returns the names of the evaluation sets."""
    from gristmill.leaks.texts import set_names

    return set_names(root.root)


def splits_with(folder: str, root: DataRoot) -> list[str]:
    """Returns the splits that are published in a folder, in the order of the corpora."""
    return published_partitions(root, folder)


def manifest_of(folder: str, root: DataRoot) -> list[str]:
    """Returns the manifest's name if a folder has a split that it would list."""
    return [names.MANIFEST_RECORD] if published_partitions(root, folder) else []


def reports_now(root: DataRoot) -> list[str]:
    """Returns the current day if a split is published that its report would describe."""
    return [today().isoformat()] if report_inputs(root) else []


def _shards_config(wanted: Wanted) -> TokenizeConfig:
    """The config of a split's token shards.

    `allow` keeps this corpus alone, so that a setting for another one rebuilds nothing.
    """
    corpus, _ = corpus_and_split(wanted.partition)
    config = wanted.config(
        TokenizeConfig,
        raw.of_drop(SHARDS, wanted.root, wanted.partition),
        filled_in={"vocabulary": VOCABULARY},
    )
    return replace(config, allow=tuple(name for name in config.allow if name == corpus.name))


def _jsonl(wanted: Wanted) -> Path:
    """The normalised records of a split."""
    corpus, split = corpus_and_split(wanted.partition)
    return wanted.root.root / names.NORMALIZED / names.normalized(corpus.name, split)


def _named(own: TokenizerFile, root: DataRoot) -> Tokenizer:
    path = own.path.relative_to(root.root).as_posix()
    return Tokenizer(name=own.name, path=path, sha256=own.sha256)


def _vocabulary_is_wanted(root: DataRoot) -> bool:
    """Whether GPT-2's vocabulary is an input of a report: its shards or itself are published."""
    published = is_published(root, PLACE, GPT2.name)
    return published or bool(published_partitions(root, names.TOKENIZED))


def _vocabulary_input(root: DataRoot) -> Input:
    """The published vocabulary as an input. Raises NotBuilt if it is not published."""
    return root.published("tokenizer", f"tokenizers/{GPT2.name}", GPT2.name)


def spans_build(wanted: Wanted) -> Build:
    """Returns the build of the spans of arithmetic of a split."""
    from gristmill.reasoning.builders.spans import has_annotations, write_spans
    from gristmill.vocabularies.tokenizer import open_tokenizer

    root, key, config = wanted.root, wanted.partition, wanted.config(SpansConfig)
    normalized = root.published(names.NORMALIZED, NORMALIZED, key)
    # Of a damaged file the run says what is wrong, once it has compared it with its record.
    with suppress(OSError, BadInput):
        if not has_annotations(root.root / names.NORMALIZED, key):
            raise NothingToBuild("the split has no annotation as <<48/2=24>>")
    inputs = [normalized, tokenizer_input(root, config.tokenizer)]
    own = open_tokenizer(root.root / PLACE / config.tokenizer)

    folder = root.root / names.NORMALIZED
    return wanted.build(
        names.SPANS,
        config,
        inputs,
        lambda attempt: write_spans(
            folder, key, attempt.out, config, own, attempt.parts, attempt.progress
        ),
        shared=key,
        tokenizer=_named(own, root),
    )


def exports_build(wanted: Wanted) -> Build:
    """Returns the build of a token dataset in the formats of other programs."""
    from gristmill.reasoning.builders.exports import write_exports

    root, key, config = wanted.root, wanted.partition, wanted.config(ExportsConfig)
    if not config.formats:
        raise NothingToBuild("no format is asked for: set formats of [reasoning.exports]")
    inputs = [root.published(f"{names.TOKENS}/{key}", TOKENS, key)]
    dataset = root.root / names.TOKENS / key
    inputs += [
        root.published(names.NORMALIZED, NORMALIZED, f"{corpus}__{split}")
        for corpus, split in shard_splits(dataset)
    ]

    normalized = root.root / names.NORMALIZED
    folders = (dataset, normalized, root.root)
    size = bytes_of(*dataset.rglob("shard_*"))
    return wanted.build(
        f"{names.EXPORTS}/{key}",
        config,
        inputs,
        lambda attempt: write_exports(*folders, attempt.out, config, attempt.progress),
        tokenizer=read_record(dataset / "provenance.json").tokenizer,
        space=2 * len(config.formats) * size,
    )


def wants_spans(root: DataRoot, _: str) -> bool:
    """Whether files ask for spans, for which all records of a split are read."""
    return bool(root.settings(SPANS))


def wants_exports(root: DataRoot, _: str) -> bool:
    """Whether files ask for a format of token datasets."""
    return bool(root.settings(EXPORTS).get("formats"))


def conversations_build(wanted: Wanted) -> Build:
    """Returns the build of one shard of the conversations of a drop."""
    from gristmill.corpora.raw.chat import messages
    from gristmill.reasoning.builders.conversations import normalize_conversations
    from gristmill.reasoning.builders.leaks import dropped

    root, key = wanted.root, wanted.partition
    folder, chat, files, account = messages.files_of(root, key)
    config = wanted.config(ConversationsConfig)
    licence = chat.corpus.licence
    if licence.training_allowed is False and not config.allow_terms:
        raise NothingToBuild(
            f"the terms of {folder.name} ({licence.id}, {licence.url}) forbid training: to build "
            "it, set allow_terms = true in [chat.conversations]"
        )
    artifact = root.artifact(*messages.PLACE.split("/"), key)
    paths = list(dict.fromkeys(path for each in files.values() for path in each))
    paths = [*chat.read_by(int(key.rpartition("__")[2]), paths)]
    inputs = root.raw_inputs(artifact, paths, messages.RAW, key)
    gone = left_out(root, [folder], paths, messages.RAW, key)
    given = ChatConfig(**vars(config), recipe=chat.table)
    left = dropped(wanted, provenance.record_path(root.root / artifact, None, shared=False))
    if left is not None:
        given, inputs = replace(given, leaks=left.config), [*inputs, *left.inputs]

    space = sum(item.bytes or 0 for item in inputs)
    return wanted.build(
        artifact,
        given,
        inputs,
        lambda attempt: normalize_conversations(
            folder,
            files,
            attempt.out,
            key,
            given,
            links=gone.links(),
            parts=lambda: attempt.parts,
            leaks=left.found(attempt.out.parent) if left else None,
            progress=attempt.progress,
        ),
        left=gone,
        space=space,
        account=account,
    )

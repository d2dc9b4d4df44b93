"""Reasoning: which laws, views, traces and sample drops belong to which asset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.contract import Trace, Violation
from gristmill.families import Catalog, Column, Kind, Law, Option, Request, Subject
from gristmill.inbox import DropKind, Shape
from gristmill.inbox.account import Account
from gristmill.reasoning import code
from gristmill.reasoning.config import (
    AlignConfig,
    NormalizeConfig,
    ReportConfig,
    SourcesConfig,
    TokenizeConfig,
)
from gristmill.reasoning.format.corpora import CORPORA, PARTITIONS
from gristmill.reasoning.format.names import MANIFEST
from gristmill.reasoning.format.reports import dates
from gristmill.settings.tables import Table
from gristmill.untrusted.files import LinkRule

if TYPE_CHECKING:
    from rich.console import RenderableType


def _facts(asset: str, folder: Path) -> Iterable[str]:
    from gristmill.reasoning.show.facts import facts

    return facts(asset, folder)


def _columns(asset: str) -> Sequence[Column]:
    from gristmill.reasoning.show.columns import columns

    return columns(asset)


def _normalized_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.normalized import normalized_laws

    missing = subject.missing({"origins": "origins"})
    subject.leaves(MANIFEST, "reasoning/raw_manifest")
    yield from _nothing(subject, "{}/{}.jsonl")
    yield from normalized_laws(subject.folder, subject.partition, has_origins=not missing)


def _nothing(subject: Subject, name: str) -> Iterable[Violation]:
    """A violation where no split has a file in a folder without a record."""
    names = (name.format(*key.rsplit("__", 1)) for key in PARTITIONS)
    if not subject.has_record and not any((subject.folder / each).is_file() for each in names):
        yield Violation("files", ".", f"there is no {name.format('<corpus>', '<split>')}")


def _raw_manifest_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.raw_manifest import raw_manifest_laws

    return raw_manifest_laws(subject.folder, subject.partition)


def _shard_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.shards import shard_laws

    if not subject.has_record:
        return _unrecorded_shard_laws(subject)
    return shard_laws(subject.folder, subject.partition, sampled=subject.sampled)


def _unrecorded_shard_laws(subject: Subject) -> Iterable[Violation]:
    """The laws of all splits of a folder without records; those without an index are others'."""
    from gristmill.reasoning.format.names import split_index
    from gristmill.reasoning.laws.other_shards import other_shard_laws, splits
    from gristmill.reasoning.laws.shards import shard_laws

    subject.leaves(MANIFEST, "reasoning/manifest")
    if not (found := splits(subject.folder)):
        yield Violation("shards", ".", "there is no <corpus>/<split>/shard_*.pt")
    for corpus, split in found:
        if subject.missing({split_index(corpus, split): f"index and tiling of {corpus}/{split}"}):
            yield from other_shard_laws(subject.folder, corpus, split)
        else:
            yield from shard_laws(subject.folder, f"{corpus}__{split}")


def _text_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.shard_texts import text_laws
    from gristmill.vocabularies.pinned import GPT2

    normalized, vocabularies = subject.inputs
    return text_laws(
        subject.folder,
        subject.partition,
        normalized,
        vocabularies / GPT2.relative,
        sampled=subject.sampled,
    )


def _manifest_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.manifest import manifest_laws

    shards = subject.inputs[0] if subject.inputs else None
    return manifest_laws(subject.folder, subject.partition, shards)


def _alignment_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.alignment import alignment_laws

    yield from _nothing(subject, "{}/{}.align.jsonl")
    yield from alignment_laws(subject.folder, subject.partition)


def _projection_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.alignment import projection_laws

    return projection_laws(subject.folder, subject.partition, subject.inputs)


def _report_laws(subject: Subject) -> Iterable[Violation]:
    from gristmill.reasoning.laws.report import report_laws

    if not subject.has_record and not dates(subject.folder):
        yield Violation("files", ".", "there is no report <date>.json")
    yield from report_laws(subject.folder, subject.partition)


def _show_record(request: Request) -> Iterable[RenderableType]:
    from gristmill.reasoning.show.terminal import record_text

    yield record_text(request)


def _show_example(request: Request) -> Iterable[RenderableType]:
    from gristmill.reasoning.show.terminal import example_text

    yield example_text(request)


def _show_steps(request: Request) -> Iterable[RenderableType]:
    from gristmill.reasoning.show.terminal import steps_text

    yield steps_text(request)


def _show_report(request: Request) -> Iterable[RenderableType]:
    from gristmill.reasoning.show.terminal import report_shown

    yield from report_shown(request)


def _trace_token(request: Request) -> Iterable[Trace]:
    from gristmill.reasoning.show.tracing import traced_token

    return traced_token(request)


def _trace_record(request: Request) -> Iterable[Trace]:
    from gristmill.reasoning.show.tracing import traced_record

    return traced_record(request)


def _trace_alignment(request: Request) -> Iterable[Trace]:
    from gristmill.reasoning.show.tracing import traced_alignment

    return traced_alignment(request)


def _trace_inputs(record: str, request: Request) -> Iterable[Trace]:
    from gristmill.provenance.trace_inputs import inputs_of

    return inputs_of(request.path, record, request.sample)


def _asset_of(folder: Path) -> str | None:
    for key in PARTITIONS:
        corpus, split = key.rsplit("__", 1)
        for name, asset in (
            (f"{split}.jsonl", "normalized"),
            (f"{split}/index.jsonl", "gpt2_shards"),
            (f"{split}.align.jsonl", "alignment"),
        ):
            if (folder / corpus / name).is_file():
                return f"reasoning/{asset}"
    if any(folder.glob("*/*/shard_*.meta.json")):
        return "reasoning/gpt2_shards"  # the original's scripts write no index
    return "reasoning/qc_report" if folder.is_dir() and dates(folder) else None


def _sample(corpus: str) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        from gristmill.reasoning.samples import write_drop

        write_drop(path, corpus)

    return write


_INBOXES = ("reasoning",)
_NOT_SET = {"vocabulary": "the assets take the published vocabulary"}
_MANIFEST = "manifest"


def _account(drop: Path, links: LinkRule) -> Account:
    from gristmill.reasoning.raw.drops import account

    return account(drop, links)


CATALOG = Catalog(
    columns=_columns,
    facts=_facts,
    kinds=[
        Kind(
            "reasoning/normalized",
            [Law("normalized", _normalized_laws)],
            _show_record,
            _trace_record,
            rows=("records",),
            set_aside={"rejected_by": "refused", "left_out_by": "left out"},
            code=code.NORMALIZED,
        ),
        Kind(
            "reasoning/raw_manifest",
            [Law("raw_manifest", _raw_manifest_laws)],
            trace=partial(_trace_inputs, _MANIFEST),
            code=code.RAW_MANIFEST,
            partitions=False,
        ),
        Kind(
            "reasoning/gpt2_shards",
            [Law("shards", _shard_laws), Law("texts", _text_laws, needs_inputs=True)],
            _show_example,
            _trace_token,
            rows=("examples",),
            code=code.SHARDS,
        ),
        Kind(
            "reasoning/manifest",
            [Law("manifest", _manifest_laws)],
            trace=partial(_trace_inputs, _MANIFEST),
            rows=("examples",),
            code=code.MANIFEST,
            partitions=False,
        ),
        Kind(
            "reasoning/alignment",
            [
                Law("alignment", _alignment_laws),
                Law("projection", _projection_laws, needs_inputs=True),
            ],
            _show_steps,
            _trace_alignment,
            rows=("examples",),
            code=code.ALIGNMENT,
        ),
        Kind(
            "reasoning/qc_report",
            [Law("report", _report_laws)],
            _show_report,
            code=code.REPORT,
        ),
    ],
    asset_of=_asset_of,
    options=[
        Option("corpus", str, "Reasoning: the corpus.", choices=tuple(CORPORA)),
        Option(
            "split",
            str,
            "The split; train by default.",
            choices=("train", "validation", "test"),
        ),
        Option("shard", str, "Reasoning: the number of the shard.", "00", commands=("trace",)),
        Option(
            "token",
            int,
            "Reasoning: the number of a token of an example, or its column where SAMPLE is a row.",
            least=0,
            commands=("trace",),
        ),
    ],
    inboxes={"reasoning": DropKind(_account, Shape(reserved=("audits",)))},
    earlier_samples={
        "reasoning/cot_collection/sums_train.tsv": (
            "6049d6049afb41165a736a3c564cb8e087aaf35f65810ab1661ab7a15cafb751"
        ),
    },
    samples={f"reasoning/{corpus}": _sample(corpus) for corpus in CORPORA},
    commands={
        "audit": "Look at the steps of reasoning examples, and record verdicts.",
        "stage": "Copy the token shards of this node's ranks to a local disk.",
        "unstage": "Remove what `gristmill stage` put into the folder of JOB.",
    },
    settings=[
        Table("reasoning/sources", SourcesConfig),
        Table("reasoning/normalized", NormalizeConfig, _INBOXES),
        Table("reasoning/gpt2_shards", TokenizeConfig, _INBOXES, not_set=_NOT_SET),
        Table("reasoning/alignment", AlignConfig, _INBOXES, not_set=_NOT_SET),
        Table("reasoning/qc_report", ReportConfig, not_set=_NOT_SET),
    ],
)

"""Figures and tables of normalised records and of token shards, for the pages of the assets.

See also `steps_preview.py`: alignments; `report_preview.py`: daily reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from gristmill import markdown
from gristmill.markdown import Markdown
from gristmill.reasoning.format import names
from gristmill.reasoning.format.corpora import Corpus, Licence, corpus_and_split
from gristmill.reasoning.show.lengths import (
    histogram,
    median,
    shares,
    small_histogram_of,
    token_lengths,
)
from gristmill.svg import small_shares

Figures = dict[str, str | int | float]
Counts = Mapping[str, int | float]

_SHOWN: Final = 3
_LONGEST: Final = 1_500
"""Characters of a value that are shown."""


def normalized_figures(folder: Path, partition: str, counts: Counts) -> Figures:
    """The source and licence of a split, its first records, and its share with CoT."""
    corpus, split = corpus_and_split(partition)
    records_total = int(counts.get("records", 0))
    figures: Figures = _small_cot(counts, records_total)
    figures |= {"source and licence": source_table(corpus), "rows": records_total}
    if rejected := rejected_table(counts):
        figures["rejected records"] = rejected
    path = folder / names.normalized(corpus.name, split)
    records = list(islice(_records(path), _SHOWN))
    if records:
        figures["first records"] = "\n\n".join(map(_record_table, records)) + "\n"
    return figures | cot_share(counts, counts.get("records", 0))


def shards_figures(folder: Path, partition: str, counts: Counts) -> Figures:
    """The source and licence of a split, its tokens, and the lengths of its examples."""
    corpus, split = corpus_and_split(partition)
    examples, tokens = counts.get("examples", 0), counts.get("text_tokens", 0)
    figures: Figures = {"source and licence": source_table(corpus), "rows": int(examples)}
    kinds = [(name, int(counts.get(f"{name}_tokens", 0))) for name in ("text", "eos", "pad")]
    rows = shares(kinds, sum(number for _, number in kinds))
    if rows:
        figures["tokens"] = markdown.table(("tokens", "number", "percent"), rows, "lrr")
    path = folder / names.split_index(corpus.name, split)
    if examples and path.is_file():
        lengths = token_lengths(path)
        picture = markdown.inline_image("Tokens of an example", small_histogram_of(lengths))
        figures = {"picture": picture, **figures}
        figures["lengths"] = markdown.image("Tokens of an example", histogram(lengths))
        figures["tokens_per_example"] = round(tokens / examples, 2)
        figures["tokens_per_example_median"] = median(lengths)
    return figures | cot_share(counts, examples)


def licence_figures(folder: Path) -> Figures:
    """The corpora of the raw manifest with source, licence and records."""
    manifest: dict[str, Any] = json.loads((folder / names.MANIFEST).read_bytes())
    rows = []
    for name, entry in manifest.items():
        licence = Licence(**entry["licence"])
        records = sum(file["records"] for file in entry["files"].values())
        cells = (allowed(licence.training_allowed), allowed(licence.redistributable))
        rows.append((name, str(entry["hf_path"]), f"{records:,}", licence_text(licence), *cells))
    headers = ("corpus", "source", "records", "licence", "training", "redistribution")
    return {"sources and licences": markdown.table(headers, rows, "llrlll")}


def source_table(corpus: Corpus) -> str:
    """Where a corpus is from and what its licence allows, as a Markdown table."""
    licence = corpus.licence
    public = " ".join(name for name in (corpus.public_path, corpus.public_subset) if name)
    rows: list[tuple[str, str]] = [
        ("corpus", corpus.name),
        ("about", corpus.notes),
        ("source", " ".join(name for name in (corpus.hf_path, corpus.subset) if name)),
        ("public release", public or "none is known"),
        ("licence", licence_text(licence)),
        ("training", allowed(licence.training_allowed)),
        ("redistribution", allowed(licence.redistributable)),
    ]
    return markdown.table(("", ""), rows, "ll")


def licence_text(licence: Licence) -> str:
    """A licence with its page, and whether someone has read it for this release."""
    text = f"{licence.id}, {licence.url}" if licence.url else licence.id
    return text if licence.confirmed else f"{text} (not confirmed)"


def allowed(value: bool | None) -> str:
    """What terms say about a use."""
    return {True: "allowed", False: "forbidden", None: "unknown"}[value]


def rejected_table(counts: Counts) -> str:
    """The rejected records by reason as a Markdown table, those that are left out last.

    Empty where there are none.
    """
    reasons = [
        (name.removeprefix(kind), int(number))
        for kind in ("rejected_by/", "left_out_by/")
        for name, number in counts.items()
        if name.startswith(kind)
    ]
    rows = shares(reasons, int(counts.get("records", 0) + counts.get("rejected", 0)))
    return markdown.table(("reason", "records", "percent"), rows, "lrr") if rows else ""


def cot_share(counts: Counts, total: float) -> Figures:
    """The percentage of records with CoT; nothing where there are no records."""
    if not total or "with_cot" not in counts:
        return {}
    return {"with_cot_percent": round(100 * counts["with_cot"] / total, 3)}


def _small_cot(counts: Counts, total: int) -> Figures:
    """The records with CoT and without as a picture for the overview of the asset."""
    if not total or "with_cot" not in counts:
        return {}
    thinking = int(counts["with_cot"])
    parts = [("with CoT", thinking), ("without CoT", total - thinking)]
    return {"picture": markdown.inline_image("Records", small_shares("Records", parts))}


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _record_table(record: Mapping[str, Any]) -> str:
    rows = [(name, _shown(value)) for name, value in record.items() if value is not None]
    return markdown.table(("", ""), rows, "ll")


def _shown(value: object) -> Markdown:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return markdown.escape(text, _LONGEST)

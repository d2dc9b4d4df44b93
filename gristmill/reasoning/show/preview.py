"""Figures, tables and drawings of artifacts, for the pages of the assets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from gristmill import markdown
from gristmill.markdown import Markdown
from gristmill.publish.build import Published
from gristmill.reasoning.format import align, names, reports
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.corpora import Corpus, Licence, corpus_and_split
from gristmill.reasoning.format.index import rows
from gristmill.reasoning.format.published import NORMALIZED, corpus_of
from gristmill.reasoning.show.place import normalized_beside, read_record
from gristmill.svg import histogram_svg, small_histogram, small_shares

_BARS: Final = 16
_WIDEST: Final = 0.99
"""Part of the examples that the bars before the last one show at least."""


_EXAMPLES: Final = 3


def alignment_figures(published: Published) -> Figures:
    """Coverage and confidence of an alignment, its rules, and examples with their steps."""
    corpus, split, counts = _split(published)
    examples = counts.get("examples", 0)
    figures: Figures = {"picture": _small_confidence(counts)} if examples else {}
    figures |= {"source and licence": source_table(corpus), "rows": int(examples)}
    for title, group in (("rules", "rules/"), ("labels", "labels/")):
        named = [(name, int(n)) for name, n in counts.items() if name.startswith(group)]
        rows = shares(
            [(name.removeprefix(group), n) for name, n in named], sum(n for _, n in named)
        )
        if rows:
            figures[title] = markdown.table((title[:-1], "number", "percent"), rows, "lrr")
    if examples:
        figures["confidences"] = markdown.image("Confidence of examples", confidence_svg(counts))
        figures["aligned_percent"] = round(100 * counts["aligned"] / examples, 3)
        figures["low_confidence_percent"] = round(100 * counts["low_confidence"] / examples, 3)
        figures["spans_per_example"] = round(counts["spans"] / examples, 3)
    pictures = examples_svg(published.folder, corpus.name, split)
    if pictures:
        figures["steps of examples"] = "\n\n".join(pictures) + "\n"
    return figures


def confidence_svg(counts: Counts) -> str:
    """Examples by confidence as bars in SVG."""
    return histogram_svg("Examples by confidence, from", _confidences(counts), _mean(counts))


def _small_confidence(counts: Counts) -> str:
    title = "Examples by confidence"
    return markdown.inline_image(title, small_histogram(title, _confidences(counts), _mean(counts)))


def _confidences(counts: Counts) -> list[tuple[str, int]]:
    return sorted(
        (name.removeprefix("confidence/"), int(number))
        for name, number in counts.items()
        if name.startswith("confidence/")
    )


def _mean(counts: Counts) -> str:
    return f"mean {counts.get('mean_confidence', 0):.3f}"


def _split(published: Published) -> tuple[Corpus, str, Counts]:
    """Corpus, split and counts of an artifact."""
    record, folder = published.record, published.folder
    key = str(record.partition)
    corpus, split = corpus_and_split(key, str(record.config.get("corpus", "")))
    if record.asset != NORMALIZED:
        root = next(each for each in folder.absolute().parents if each.name == "reasoning").parent
        corpus = corpus_of(root, key)
    return corpus, split, record.counts


def examples_svg(folder: Path, corpus: str, split: str) -> list[str]:
    """Examples with their steps in colours, as images in Markdown.

    The first example of each rule is taken first, then the next ones. Without the normalised
    file there is none.
    """
    from gristmill.reasoning.show import spans
    from gristmill.reasoning.show.place import parsed

    normalized = normalized_beside(folder)
    if not (normalized / names.normalized(corpus, split)).is_file():
        return []
    found: list[str] = []
    for row in _examples(folder / names.alignment(corpus, split)):
        if (place := parsed(row.example_id)) is not None:
            record = read_record(normalized, place)
            found.append(markdown.image(row.example_id, spans.svg(row, record)))
    return found


def _examples(path: Path) -> Iterator[AlignRow]:
    """The first row of each rule, at most some of them."""
    rules: set[str] = set()
    first = []
    for row in islice(align.rows(path), 2000):
        if row.rule not in rules and row.step_labels:
            rules.add(row.rule)
            first.append(row)
    yield from first[:_EXAMPLES]


COLUMNS: Final = (
    "examples",
    "total_tokens",
    "avg_seq_len",
    "pct_with_cot",
    "alignment_coverage",
    "mean_confidence",
    "low_confidence_share",
)
"""Figures of a split that a table has."""


def report_figures(published: Published) -> Figures:
    """The splits of a report and what is outside of a tolerance; numbers of all splits together."""
    report: dict[str, Any] = json.loads(
        (published.folder / f"{published.record.partition}.json").read_bytes()
    )
    figures: Figures = {
        "splits of the report": splits_table(report),
        "gate": gate_text(report["gate"]),
    }
    if report["warnings"]:
        figures["what to know"] = markdown.bullets(map(str, report["warnings"])) + "\n"
    if flagged := flagged_table(report["invariance"]):
        figures["perturbations"] = flagged
    return figures


def splits_table(report: Mapping[str, Any]) -> str:
    """The splits of a report as a Markdown table, those of its datasets behind the others."""
    rows = [
        (name, *(number(split.get(column)) for column in COLUMNS))
        for name, split in reports.all_splits(report).items()
    ]
    return markdown.table(("split", *COLUMNS), rows, "l" + "r" * len(COLUMNS))


def flagged_table(invariance: Mapping[str, Any]) -> str:
    """Perturbations that change 1 % of the token ids or more, as a Markdown table."""
    rows = [
        (name, str(kind), f"{share:.2%}")
        for name, kinds in invariance["flagged"].items()
        for kind, share in kinds.items()
    ]
    return (
        markdown.table(("split", "perturbation", "token ids changed"), rows, "llr") if rows else ""
    )


def gate_text(gate: Mapping[str, Any]) -> str:
    """Whether a report is within the tolerances of its baseline, and what is not."""
    against = f"the report of {gate['baseline']}" if gate["baseline"] else "no baseline"
    first = f"Compared with {markdown.escape(against)}: "
    if gate["passed"]:
        return first + "nothing is outside of a tolerance.\n"
    return first + "\n\n" + markdown.bullets(map(str, gate["breaches"])) + "\n"


def number(value: object) -> str:
    """A number of a report for a table; a dash where it has none."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else "–"


Figures = dict[str, str | int | float]
Counts = Mapping[str, int | float]

_SHOWN: Final = 3
_LONGEST: Final = 1_500
"""Characters of a value that are shown."""


def normalized_figures(published: Published) -> Figures:
    """The source and licence of a split, its first records, and its share with CoT."""
    corpus, split, counts = _split(published)
    records_total = int(counts.get("records", 0))
    figures: Figures = _small_cot(counts, records_total)
    figures |= {"source and licence": source_table(corpus), "rows": records_total}
    if rejected := rejected_table(counts):
        figures["rejected records"] = rejected
    path = published.folder / names.normalized(corpus.name, split)
    records = list(islice(_records(path), _SHOWN))
    if records:
        figures["first records"] = "\n\n".join(map(_record_table, records)) + "\n"
    return figures | cot_share(counts, counts.get("records", 0))


def shards_figures(published: Published) -> Figures:
    """The source and licence of a split, its tokens, and the lengths of its examples."""
    corpus, split, counts = _split(published)
    examples, tokens = counts.get("examples", 0), counts.get("text_tokens", 0)
    figures: Figures = {"source and licence": source_table(corpus), "rows": int(examples)}
    kinds = [(name, int(counts.get(f"{name}_tokens", 0))) for name in ("text", "eos", "pad")]
    rows = shares(kinds, sum(number for _, number in kinds))
    if rows:
        figures["tokens"] = markdown.table(("tokens", "number", "percent"), rows, "lrr")
    path = published.folder / names.split_index(corpus.name, split)
    if examples and path.is_file():
        lengths = token_lengths(path)
        picture = markdown.inline_image("Tokens of an example", small_histogram_of(lengths))
        figures = {"picture": picture, **figures}
        figures["lengths"] = markdown.image("Tokens of an example", histogram(lengths))
        figures["tokens_per_example"] = round(tokens / examples, 2)
        figures["tokens_per_example_median"] = median(lengths)
    return figures | cot_share(counts, examples)


def licence_figures(published: Published) -> Figures:
    """The corpora of the raw manifest with source, licence and records."""
    manifest: dict[str, Any] = json.loads((published.folder / names.MANIFEST).read_bytes())
    rows, counted = [], Counter[str]()
    for name, entry in manifest.items():
        licence = Licence(**entry["licence"])
        records = sum(file["records"] for file in entry["files"].values())
        counted[name] = records
        cells = (allowed(licence.training_allowed), allowed(licence.redistributable))
        rows.append((name, str(entry["hf_path"]), f"{records:,}", licence_text(licence), *cells))
    headers = ("corpus", "source", "records", "licence", "training", "redistribution")
    return {
        "picture": _by_corpus("Records", counted),
        "sources and licences": markdown.table(headers, rows, "llrlll"),
    }


def manifest_figures(published: Published) -> Figures:
    """The tokens of the manifest of all shards by corpus, without padding, as a picture."""
    counted: Counter[str] = Counter()
    for shard in json.loads((published.folder / names.MANIFEST).read_bytes()):
        counted[shard["dataset"]] += shard["text_tokens"]
    return {"picture": _by_corpus("Tokens", counted)}


def _by_corpus(what: str, counted: Counter[str]) -> str:
    """The five largest corpora as a picture for the overview of the asset."""
    title = f"{what} by corpus" if len(counted) <= 5 else f"{what}: five of {len(counted)} corpora"
    return markdown.inline_image(title, small_shares(title, counted.most_common(5)))


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


def token_lengths(path: Path) -> Counter[int]:
    """How many examples have each number of tokens, without the end-of-text token.

    Memory does not grow with the examples, but with the lengths that occur.
    """
    return Counter(row.num_tokens for row in rows(path))


def median(lengths: Mapping[int, int]) -> int:
    """The length that half of the examples have at most; 0 where there are none."""
    return _quantile(lengths, 0.5)


def histogram(lengths: Mapping[int, int]) -> str:
    """Examples by length as bars in SVG; the last bar has all that are longer."""
    return histogram_svg("Tokens of an example", _bars(lengths), f"median {median(lengths):,}")


def small_histogram_of(lengths: Mapping[int, int]) -> str:
    """The same bars for the overview of an asset."""
    return small_histogram("Tokens of an example", _bars(lengths), f"median {median(lengths):,}")


def _bars(lengths: Mapping[int, int]) -> list[tuple[str, int]]:
    step = _nice(max(1, -(-_quantile(lengths, _WIDEST) // (_BARS - 1))))
    bars = Counter[int]()
    for length, number in lengths.items():
        bars[min(length // step, _BARS - 1)] += number
    last = max(bars, default=0)
    return [
        (f"{bar * step:,}{'+' if bar == _BARS - 1 else ''}", bars[bar]) for bar in range(last + 1)
    ]


def _quantile(lengths: Mapping[int, int], share: float) -> int:
    wanted, seen = share * sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= wanted:
            return length
    return 0


def _nice(width: int) -> int:
    """The least of 1, 2, 5, 10, 20, 50 .. that is not below `width`."""
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if factor * scale >= width:
                return factor * scale
        scale *= 10


def shares(counts: Iterable[tuple[str, int]], total: int) -> list[tuple[str, str, str]]:
    """Rows of a table: name, number and percent of each count that is not 0.

    counts: name and number.
    total: what 100 percent is.
    """
    return [
        (name, f"{number:,}", f"{100 * number / total:.1f} %" if total else "–")
        for name, number in counts
        if number
    ]

"""Figures and pictures of an alignment, for the page of its asset.

See also `spans.py`: one example with its steps in colours; `preview.py`: records and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from gristmill import markdown
from gristmill.reasoning.format import align, names
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.corpora import corpus_and_split
from gristmill.reasoning.show.lengths import shares
from gristmill.reasoning.show.preview import Counts, Figures, source_table
from gristmill.svg import histogram_svg, small_histogram

_SHOWN: Final = 3


def alignment_figures(folder: Path, partition: str, counts: Counts) -> Figures:
    """Coverage and confidence of an alignment, its rules, and examples with their steps."""
    corpus, split = corpus_and_split(partition)
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
    pictures = examples_svg(folder, corpus.name, split)
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


def examples_svg(folder: Path, corpus: str, split: str) -> list[str]:
    """Examples with their steps in colours, as images in Markdown.

    folder: of the alignments; the normalised files are beside it.

    The first example of each rule is taken first, then the next ones. Without the normalised
    file there is none.
    """
    from gristmill.reasoning.show import spans
    from gristmill.reasoning.show.place import parsed
    from gristmill.reasoning.show.terminal import normalized_beside, read_record

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
    yield from first[:_SHOWN]

"""A shard as Markdown: counts, lengths, languages, exercises and a few conversations."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill import markdown
from gristmill.printable import printable
from gristmill.publish.build import Published
from gristmill.svg import (
    BAR,
    GROUND,
    INK,
    MONOSPACED,
    RULE,
    SOFT,
    WIDEST,
    fitted_caption,
    small_shares,
)
from gristmill.synth.format import harmony_tokens, indexed
from gristmill.synth.laws.kd_shard import unknown_keys
from gristmill.synth.show import tokens
from gristmill.synth.show.tokens import Line, ShownToken
from gristmill.vocabularies.pinned import O200K

_BARS: Final = 32
_HIGH, _FROM, _BASE = 200, 60, 160
_TALLEST: Final = 130

Lengths = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The lengths that occur, ascending, and how many documents have each; both int64 [L]."""


def document_lengths(root: Path, number: str) -> Lengths:
    """Return the lengths in tokens over both splits of a shard.

    Documents are read in batches. Both arrays are empty if there are none.
    """
    lengths: Lengths = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    for split in ("train", "valid"):
        prefix = root / split / f"shard_{number}_tokens"
        if prefix.with_name(prefix.name + ".idx").exists():
            for batch in indexed.read(prefix).length_batches():
                lengths = _merged(lengths, np.unique(batch, return_counts=True))
    return lengths


def _merged(one: Lengths, other: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> Lengths:
    lengths, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    numbers = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(numbers, places, np.concatenate([one[1], other[1]]))
    return lengths, numbers


def _quantile(lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], q: float) -> float:
    """Return the quantile q of the lengths of all documents, as np.quantile does."""
    upto = np.cumsum(numbers)
    rank = q * (int(upto[-1]) - 1)
    below, above = lengths[np.searchsorted(upto, [math.floor(rank), math.ceil(rank)], "right")]
    return float(below + (above - below) * (rank - math.floor(rank)))


def histogram(lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> str:
    """Return document lengths as bars in SVG. The last bar has all beyond the 99.5th percentile.

    lengths: the lengths that occur, int64 [L], ascending, not empty.
    numbers: how many documents have each, int64 [L].
    """
    least, middle = float(lengths[0]), _quantile(lengths, numbers, 0.5)
    top = max(_quantile(lengths, numbers, 0.995), least + 1)
    edges = np.linspace(least, top, _BARS + 1)
    heights, _ = np.histogram(np.minimum(lengths, top), edges, weights=numbers)
    step = (_WIDTH - _FROM - 20) / _BARS
    tallest = max(int(heights.max()), 1)
    bars = "".join(
        f'<rect x="{_FROM + i * step:.1f}" y="{_BASE - _TALLEST * n / tallest:.1f}" '
        f'width="{step - 1:.1f}" height="{_TALLEST * n / tallest:.1f}"/>'
        for i, n in enumerate(heights.tolist())
        if n
    )
    ticks = "".join(
        f'<text x="{_FROM + i * step:.0f}" y="{_BASE + 16}" text-anchor="middle">'
        f"{edges[i]:,.0f}</text>"
        for i in range(0, _BARS + 1, 8)
    )
    median = _FROM + (middle - edges[0]) / (edges[-1] - edges[0]) * step * _BARS
    return _svg(
        f'<g fill="{BAR}">{bars}</g>'
        f'<path d="M{_FROM} {_BASE}H{_WIDTH - 20}" stroke="{RULE}"/>'
        f'<path d="M{median:.1f} 24V{_BASE}" stroke="#fff" stroke-dasharray="4 3"/>'
        f'<text x="{median + 5:.1f}" y="28">median {middle:,.0f}</text>'
        f'<text x="{_FROM - 8}" y="{_BASE - _TALLEST + 4}" text-anchor="end">{tallest:,}</text>'
        f'<text x="{_FROM - 8}" y="{_BASE + 3}" text-anchor="end">0</text>{ticks}'
        f'<text x="{(_FROM + _WIDTH) / 2:.0f}" y="{_BASE + 34}" text-anchor="middle">'
        f"tokens in a document ({int(numbers.sum()):,} documents)</text>"
    )


def _svg(drawing: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HIGH}" '
        f'viewBox="0 0 {_WIDTH} {_HIGH}">'
        f"<style>text{{font:11px sans-serif;fill:{SOFT}}}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>{drawing}</svg>'
    )


_WIDTH: Final = WIDEST
_LEFT: Final = 80
_LINE: Final = 22
_HEIGHT: Final = 17
_CHARACTER: Final = 6.65
_GAP: Final = 2

_FILLS: Final = ("#e3e7ea", "#ffd766", "#a9dfb0")
_EDGES: Final = ("#8a97a0", "#c98a00", "#2f8f46")
_STYLE: Final = (
    "text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#22272b}"
    f".h{{font-weight:bold;fill:{INK}}}.l{{fill:{SOFT}}}.m{{fill:{SOFT}}}"
    + "".join(
        f".s{span}{{fill:{fill};stroke:{edge}}}.s{span}m{{fill:{fill};fill-opacity:.2;"
        f"stroke:{edge};stroke-dasharray:2 2}}"
        for span, (fill, edge) in enumerate(zip(_FILLS, _EDGES, strict=True))
    )
    + ".c{font-weight:bold}"
)


LIMIT: Final = 95_000
"""Bytes of a preview at most: it is in an event of Dagster."""

_SHOWN: Final = 3
_NAMES: Final = 12
_NAME_LIMIT: Final = 60


def preview(root: Path, number: str, vocabulary: Path, counts: Mapping[str, int | float]) -> str:
    """Return a shard as Markdown of at most `LIMIT` bytes.

    counts: of the shard's record (`train_rows`, `spans/prompt`, `languages/en` ..).

    A longer text loses conversations. Raises BadInput if a shown document is
    damaged.
    """
    documents = _examples(root, number)
    while True:
        text = _markdown(root, number, counts, documents, vocabulary)
        if len(text.encode()) <= LIMIT or not documents:
            return text
        documents = documents[:-1]


def _markdown(
    root: Path,
    number: str,
    counts: Mapping[str, int | float],
    documents: Sequence[tuple[str, int]],
    vocabulary: Path,
) -> str:
    paragraphs = [f"### SYNTH shard {number}", _splits(counts), _spans(counts)]
    if documents:
        conversations = [
            tokens.conversation(root, number, split, document, vocabulary)
            for split, document in documents
        ]
        paragraphs.append(markdown.image("Conversations as tokens", svg(conversations)))
    lengths, numbers = document_lengths(root, number)
    if len(lengths):
        bars = histogram(lengths, numbers)
        paragraphs.append(markdown.image("Document lengths in tokens", bars))
    return "\n\n".join([*paragraphs, *_names(counts), *_remarks(counts)]) + "\n"


def picture(counts: Mapping[str, int | float]) -> str:
    """Return the spans of a shard's labels as a picture for the overview of its asset.

    counts: of the shard's record.
    """
    labels = [(name, int(counts.get(f"spans/{name}", 0))) for name in harmony_tokens.SPANS]
    return markdown.inline_image("Spans of the labels", small_shares("Tokens by span", labels))


def _names(counts: Mapping[str, int | float]) -> Iterator[str]:
    """Yield a table of the languages and one of the exercises, where there are some."""
    for kind in ("languages", "exercises"):
        names = {k.split("/", 1)[1]: int(v) for k, v in counts.items() if k.startswith(f"{kind}/")}
        if names:
            headers = (kind.capitalize(), "documents")
            yield markdown.table(headers, _largest(names), "lr")


def _remarks(counts: Mapping[str, int | float]) -> Iterator[str]:
    if counts.get("control_texts"):
        yield f"{counts['control_texts']:,} control-token texts were in bodies and stayed text."
    if counts.get("bad_rows"):
        yield f"{counts['bad_rows']:,} rows were set aside, see `quarantine/`."
    if found := unknown_keys(counts):
        yield markdown.escape(f"{found[0].upper()}{found[1:]}.")


def _splits(counts: Mapping[str, int | float]) -> str:
    rows = []
    for split in ("train", "valid"):
        documents, total = counts[f"{split}_rows"], counts[f"{split}_tokens"]
        mean = f"{total / documents:,.1f}" if documents else "–"
        rows.append((split, f"{documents:,}", f"{total:,}", mean))
    headers = ("split", "documents", "tokens", "tokens per document")
    return markdown.table(headers, rows, "lrrr")


def _spans(counts: Mapping[str, int | float]) -> str:
    labels = {name: counts.get(f"spans/{name}", 0) for name in harmony_tokens.SPANS}
    total = sum(labels.values()) or 1
    loss = ("masked", "supervised", "supervised")
    rows = [
        (name, kind, f"{count:,}", f"{100 * count / total:.1f} %")
        for (name, count), kind in zip(labels.items(), loss, strict=True)
    ]
    return markdown.table(("span of the label", "loss", "tokens", "percent"), rows, "llrr")


def _largest(names: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the most frequent names, and the sum of the rest."""
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    rows: list[tuple[str, str]] = [
        (markdown.escape(name, _NAME_LIMIT), f"{count:,}") for name, count in ordered[:_NAMES]
    ]
    if rest := sum(count for _, count in ordered[_NAMES:]):
        rows.append((f"{len(ordered) - _NAMES} others", f"{rest:,}"))
    return rows


def _examples(root: Path, number: str) -> list[tuple[str, int]]:
    """Return the documents to show: two of train and one of valid, or as many as there are."""
    examples: list[tuple[str, int]] = []
    for split in ("train", "valid"):
        prefix = root / split / f"shard_{number}_tokens"
        if prefix.with_name(prefix.name + ".idx").exists():
            length = len(indexed.read(prefix))
            examples += [(split, n) for n in range(min(length, 2 if split == "train" else 1))]
    return examples[:_SHOWN]


def manifest_table(root: Path) -> str:
    """Return the shards of a manifest as a Markdown table."""
    manifest = json.loads((root / "manifest.json").read_bytes())
    rows = [
        (
            f"{split}/{shard['name']}",
            f"{shard['rows']:,}",
            f"{shard['tokens']:,}",
            f"{sum(shard['bytes'].values()):,}",
        )
        for split, inventory in manifest["splits"].items()
        for shard in inventory["shards"]
    ]
    return markdown.table(("shard", "documents", "tokens", "bytes"), rows, "lrrr") + "\n"


def of_shard(published: Published) -> dict[str, str]:
    """Markdown documents that show counts, lengths and some conversations of a published shard."""
    record = published.record
    root = published.folder.parents[len(PurePosixPath(record.artifact).parts) - 1]
    vocabulary, own = root / "tokenizer" / O200K.relative, record.tokenizer
    if own is not None and own.name != O200K.name:
        vocabulary = root / own.path
    number = str(record.partition).rpartition("__")[2]
    return {
        "picture": picture(record.counts),
        "preview": preview(published.folder, number, vocabulary, record.counts),
    }


def of_manifest(published: Published) -> dict[str, str]:
    """Markdown documents that show a published manifest, by title."""
    counts = published.record.counts
    labels = [(f"{split} tokens", int(counts[f"{split}_tokens"])) for split in ("train", "valid")]
    shown = markdown.inline_image("Tokens by split", small_shares("Tokens by split", labels))
    return {"picture": shown, "inventory": manifest_table(published.folder)}


def of_harmony_manifest(published: Published) -> dict[str, str]:
    """The rows of a published manifest, and those that were skipped, as a picture.

    The manifest of a finished conversion is taken as it is, and counts nothing.
    """
    counts = published.record.counts
    if "rows" not in counts:
        return {}
    labels = [("rows", int(counts["rows"])), ("skipped", int(counts.get("skipped", 0)))]
    return {"picture": markdown.inline_image("Rows", small_shares("Rows of all shards", labels))}


def svg(conversations: Sequence[tuple[str, list[Line]]]) -> str:
    """Return the conversations below each other, with a legend, as one SVG document.

    conversations: titles and messages, as `tokens.conversation` returns them.
    """
    drawing = _Drawing()
    drawing.legend()
    for title, lines in conversations:
        drawing.title(title)
        for line in lines:
            drawing.line(line)
    return drawing.document()


class _Drawing:
    """The rectangles of a class are in one path, which halves the size of the file."""

    def __init__(self) -> None:
        self._paths: dict[str, list[str]] = {}
        self._texts: list[str] = []
        self._y = 8

    def legend(self) -> None:
        x = 10.0
        for span, name in enumerate(harmony_tokens.SPANS):
            x = self._token(ShownToken(name, span, span == harmony_tokens.PROMPT), x) + 8
        self._y += _LINE
        self._text(10, "dashed and pale: masked, not in the loss", "l")
        self._y += _LINE + 6

    def title(self, title: str) -> None:
        self._text(10, fitted_caption(title, _WIDTH - 20, 11, MONOSPACED), "h")
        self._y += _LINE

    def line(self, line: Line) -> None:
        self._text(10, line.label, "l")
        x = float(_LEFT)
        for token in line.tokens:
            if x + _token_width(token) > _WIDTH - 10 and x > _LEFT:
                x, self._y = float(_LEFT), self._y + _LINE
            x = self._token(token, x) + _GAP
        self._y += _LINE + 2

    def _token(self, token: ShownToken, x: float) -> float:
        """Draw a token at `x`; return where it ends."""
        width = _token_width(token)
        if token.span is not None:
            name = f"s{token.span}{'m' if token.masked else ''}"
            outline = f"M{x:.0f} {self._y}h{width:.0f}v{_HEIGHT}h-{width:.0f}z"
            self._paths.setdefault(name, []).append(outline)
        style = " ".join(["c"] * token.control + ["m"] * token.masked)
        style = "l" if token.span is None else style
        self._text(x + 3, token.marked, style)
        return x + width

    def _text(self, x: float, text: str, style: str) -> None:
        name = f' class="{style}"' if style else ""
        shown = escape(printable(text))
        self._texts.append(f'<text x="{x:.0f}" y="{self._y + 12}"{name}>{shown}</text>')

    def document(self) -> str:
        paths = "".join(f'<path class="{n}" d="{"".join(d)}"/>' for n, d in self._paths.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{self._y + 4}" '
            f'viewBox="0 0 {_WIDTH} {self._y + 4}"><style>{_STYLE}</style>'
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>{paths}'
            f"{''.join(self._texts)}</svg>"
        )


def _token_width(token: ShownToken) -> float:
    """Return the width in pixels: wide characters take two columns, combining ones none."""
    columns = sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in token.marked
    )
    return round(columns * _CHARACTER * (1.04 if token.control else 1)) + 6

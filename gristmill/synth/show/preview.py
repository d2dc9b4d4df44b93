"""Markdown that shows a shard: counts, lengths, languages, exercises and a few conversations.

See also `tokens`: drawing a conversation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gristmill import markdown
from gristmill.synth.format import harmony_tokens, indexed
from gristmill.synth.show import tokens as chips

LIMIT: Final = 95_000
"""Bytes that a preview may have: Dagster's events carry it whole."""

_SHOWN: Final = 3
_NAMES: Final = 12
_NAME_LIMIT: Final = 60
_BARS: Final = 32


def preview(root: Path, number: str, vocabulary: Path, counts: Mapping[str, int | float]) -> str:
    """A shard as Markdown below `LIMIT` bytes.

    counts: of the shard's record (`train_rows`, `spans/prompt`, `languages/en` ..).
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
    blocks = [f"### SYNTH shard {number}", _splits(counts), _spans(counts)]
    if documents:
        drawn = [
            chips.conversation(root, number, split, document, vocabulary)
            for split, document in documents
        ]
        blocks.append(markdown.image("Conversations as token chips", chips.svg(drawn)))
    lengths, numbers = document_lengths(root, number)
    if len(lengths):
        blocks.append(markdown.image("Document lengths in tokens", histogram(lengths, numbers)))
    for name in ("languages", "exercises"):
        found = {k.split("/", 1)[1]: int(v) for k, v in counts.items() if k.startswith(f"{name}/")}
        if found:
            headers = (name.capitalize(), "documents")
            blocks.append(markdown.table(headers, _largest(found), "lr"))
    if counts.get("control_texts"):
        blocks.append(
            f"{counts['control_texts']:,} control-token texts were in bodies and stayed text."
        )
    if counts.get("bad_rows"):
        blocks.append(f"{counts['bad_rows']:,} rows were set aside, see `quarantine/`.")
    return "\n\n".join(blocks) + "\n"


def _splits(counts: Mapping[str, int | float]) -> str:
    rows = []
    for split in ("train", "valid"):
        documents, tokens = counts[f"{split}_rows"], counts[f"{split}_tokens"]
        mean = f"{tokens / documents:,.1f}" if documents else "–"
        rows.append((split, f"{documents:,}", f"{tokens:,}", mean))
    headers = ("split", "documents", "tokens", "tokens per document")
    return markdown.table(headers, rows, "lrrr")


def _spans(counts: Mapping[str, int | float]) -> str:
    tokens = {name: counts.get(f"spans/{name}", 0) for name in harmony_tokens.SPANS}
    whole = sum(tokens.values()) or 1
    loss = ("masked", "supervised", "supervised")
    rows = [
        (name, kind, f"{count:,}", f"{100 * count / whole:.1f} %")
        for (name, count), kind in zip(tokens.items(), loss, strict=True)
    ]
    return markdown.table(("span of the label", "loss", "tokens", "share"), rows, "llrr")


def _largest(found: Mapping[str, int]) -> list[tuple[str, str]]:
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    rows: list[tuple[str, str]] = [
        (markdown.escape(name, _NAME_LIMIT), f"{count:,}") for name, count in ordered[:_NAMES]
    ]
    if rest := sum(count for _, count in ordered[_NAMES:]):
        rows.append((f"{len(ordered) - _NAMES} others", f"{rest:,}"))
    return rows


def _examples(root: Path, number: str) -> list[tuple[str, int]]:
    """Documents to show: two of train and one of valid where there are as many."""
    found: list[tuple[str, int]] = []
    for split in ("train", "valid"):
        prefix = root / split / f"shard_{number}_tokens"
        if prefix.with_name(prefix.name + ".idx").exists():
            length = len(indexed.read(prefix))
            found += [(split, n) for n in range(min(length, 2 if split == "train" else 1))]
    return found[:_SHOWN]


Lengths = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The lengths that occur, ascending, and how many documents have each; both int64 [L]."""


def document_lengths(root: Path, number: str) -> Lengths:
    """Lengths in tokens over both splits of a shard, from one chunk of documents at a time."""
    found: Lengths = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    for split in ("train", "valid"):
        prefix = root / split / f"shard_{number}_tokens"
        if prefix.with_name(prefix.name + ".idx").exists():
            for chunk in indexed.read(prefix).length_batches():
                found = _merged(found, np.unique(chunk, return_counts=True))
    return found


def _merged(one: Lengths, other: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> Lengths:
    lengths, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    numbers = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(numbers, places, np.concatenate([one[1], other[1]]))
    return lengths, numbers


def _quantile(lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], q: float) -> float:
    """What np.quantile says of all the documents' lengths."""
    upto = np.cumsum(numbers)
    rank = q * (int(upto[-1]) - 1)
    below, above = lengths[np.searchsorted(upto, [math.floor(rank), math.ceil(rank)], "right")]
    return float(below + (above - below) * (rank - math.floor(rank)))


def histogram(lengths: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> str:
    """Document lengths as bars; the last bar holds all beyond the 99.5th percentile.

    lengths, numbers: as `document_lengths` gives them, not empty.
    """
    least, middle = float(lengths[0]), _quantile(lengths, numbers, 0.5)
    top = max(_quantile(lengths, numbers, 0.995), least + 1)
    edges = np.linspace(least, top, _BARS + 1)
    heights, _ = np.histogram(np.minimum(lengths, top), edges, weights=numbers)
    width, height, left, base = 720, 200, 60, 160
    step = (width - left - 20) / _BARS
    tallest = max(int(heights.max()), 1)
    bars = "".join(
        f'<rect x="{left + i * step:.1f}" y="{base - 130 * n / tallest:.1f}" '
        f'width="{step - 1:.1f}" height="{130 * n / tallest:.1f}"/>'
        for i, n in enumerate(heights.tolist())
        if n
    )
    ticks = "".join(
        f'<text x="{left + i * step:.0f}" y="{base + 16}" text-anchor="middle">'
        f"{edges[i]:,.0f}</text>"
        for i in range(0, _BARS + 1, 8)
    )
    median = left + (middle - edges[0]) / (edges[-1] - edges[0]) * step * _BARS
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>text{{font:11px sans-serif;fill:#5b6770}}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/><g fill="#6c8ebf">{bars}</g>'
        f'<path d="M{left} {base}H{width - 20}" stroke="#5b6770"/>'
        f'<path d="M{median:.1f} 24V{base}" stroke="#c0392b" stroke-dasharray="4 3"/>'
        f'<text x="{median + 5:.1f}" y="28">median {middle:,.0f}</text>'
        f'<text x="{left - 8}" y="{base - 126}" text-anchor="end">{tallest:,}</text>'
        f'<text x="{left - 8}" y="{base + 3}" text-anchor="end">0</text>{ticks}'
        f'<text x="{(left + width) / 2:.0f}" y="{base + 34}" text-anchor="middle">'
        f"tokens in a document ({int(numbers.sum()):,} documents)</text></svg>"
    )


def manifest_table(root: Path) -> str:
    """The shards that `manifest.json` in `root` lists, as a Markdown table."""
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

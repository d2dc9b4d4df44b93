"""A shard as Markdown: counts, lengths, languages, exercises and a few conversations.

See also `drawing.py`: conversations in SVG; `lengths.py`: the distribution of lengths.

Source: `docs/formats/synth.md#unknown-keys`, `docs/formats/synth.md#kd-manifest-keys`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from gristmill import markdown
from gristmill.publish.build import Published
from gristmill.svg import small_shares
from gristmill.synth.format import harmony_tokens, indexed
from gristmill.synth.laws.kd_shard import unknown_keys
from gristmill.synth.show import drawing, tokens
from gristmill.synth.show.lengths import document_lengths, histogram
from gristmill.vocabularies.pinned import O200K

LIMIT: Final = 95_000
"""Bytes of a preview at most: it is in an event of Dagster."""

_SHOWN: Final = 3
_NAMES: Final = 12
_NAME_LIMIT: Final = 60


def preview(root: Path, number: str, vocabulary: Path, counts: Mapping[str, int | float]) -> str:
    """Return a shard as Markdown of at most `LIMIT` bytes.

    root: the dataset.
    number: of the shard ("00").
    vocabulary: the vocabulary file.
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
        paragraphs.append(markdown.image("Conversations as tokens", drawing.svg(conversations)))
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
    vocabulary = root / "tokenizer" / O200K.relative
    number = str(record.partition)
    return {
        "picture": picture(record.counts),
        "preview": preview(published.folder, number, vocabulary, record.counts),
    }


def of_manifest(published: Published) -> dict[str, str]:
    """Markdown documents that show a published manifest, by title."""
    return {"inventory": manifest_table(published.folder)}

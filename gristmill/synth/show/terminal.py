"""A conversation as coloured tokens in a terminal, from a Harmony shard or a Megatron dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput
from gristmill.families import Request
from gristmill.printable import printable
from gristmill.provenance import RECORD, read_record
from gristmill.synth.builders.harmony_shard import OPTIONAL, REQUIRED, open_shard, shard_name
from gristmill.synth.format import harmony_tokens, indexed, parquet
from gristmill.synth.read.origins import shard_and_split
from gristmill.synth.render import documents, strict
from gristmill.synth.render.templates import BadRow, Renderer
from gristmill.synth.show import tokens
from gristmill.synth.show.tokens import Line
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import O200K

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.text import Text

# Two shades of each span, so that a person sees where one token ends and the next begins.
_GROUNDS: Final = (
    ("grey85", "grey78"),
    ("navajo_white1", "light_goldenrod2"),
    ("pale_green1", "dark_sea_green2"),
)


def document_text(root: Path, number: str, split: str, document: int, vocabulary: Path) -> Text:
    """Return one document of a dataset as coloured tokens."""
    prefix = root / split / f"shard_{number}_tokens"
    if not prefix.with_name(prefix.name + ".idx").exists():
        raise BadInput(prefix, f"shard {number} has no documents in {split}")
    documents = len(indexed.opened(prefix))
    if not 0 <= document < documents:
        raise BadInput(prefix, f"has documents 0 to {documents - 1}, not {document}")
    title, lines = tokens.conversation(root, number, split, document, vocabulary, whole=True)
    return _text(title, lines)


def row_text(folder: Path, number: str, row: int, vocabulary: Path) -> Text:
    """Return one row of a Harmony shard, rendered, as coloured tokens."""
    shard = folder / shard_name(number)
    if not shard.is_file():
        raise BadInput(shard, "there is no such shard")
    return _text(*row_lines(shard, row, _row(shard, row), vocabulary))


def row_lines(
    shard: Path, row: int, values: Mapping[str, Any], vocabulary: Path
) -> tuple[str, list[Line]]:
    """Return the title of a row of a Harmony shard, and its messages as they are rendered.

    row: from 0. values: its columns, by name. Raises BadInput if it cannot be rendered.
    """
    try:
        rendered = Renderer(vocabulary).read(values["messages_json"])
        strict.parse(values["messages_json"])
        made = documents.assemble([rendered], vocabulary, TIKTOKEN)
    except (BadRow, ValueError, RecursionError) as error:
        raise BadInput(shard, f"synth_id {values['synth_id']!r}: {error}", row + 1) from error
    bounds = list(pairwise([0, *np.cumsum(made.runs).tolist()]))
    span = made.span.tolist()
    mask = [int(value != 0) for value in span]
    lines = tokens.lines(made.tokens.tolist(), mask, span, bounds, vocabulary, True)
    title = f"{shard.name} row {row + 1} · {values['synth_id']} · {len(span):,} tokens"
    about = [values.get(name) for name in OPTIONAL]
    whole_title = " · ".join([title, *(str(name) for name in about if name)])
    return printable(whole_title), lines


def _row(shard: Path, row: int) -> dict[str, Any]:
    """Return the columns of one row that are read. Raises BadInput without it, or if not UTF-8."""
    with open_shard(shard) as file:
        columns = [name for name in (*REQUIRED, *OPTIONAL) if name in file.names]
        before = 0
        for group, rows in enumerate(file.groups):
            if before <= row < before + rows:
                for batch in file.batches(1024, columns, [group]):
                    if row < before + len(batch):
                        return _values(shard, batch.slice(row - before, 1), row)
                    before += len(batch)
            before += rows
    raise BadInput(shard, f"has rows 0 to {before - 1}, not {row}")


def _values(shard: Path, batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    values = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        (values[name],), broken = parquet.values(column)
        if broken:
            raise BadInput(shard, f"{name} is not UTF-8: {broken[0]}", row + 1)
    return values


def _text(title: str, lines: Sequence[Line]) -> Text:
    from rich.text import Text

    text = Text(f"{title}\n", style="bold")
    for span, name in enumerate(harmony_tokens.SPANS):
        text.append(f" {name} ", style=f"not bold black on {_GROUNDS[span][0]}")
        text.append(" ")
    text.append("italic: masked, not in the loss\n", style="not bold italic")
    for line in lines:
        text.append(f"\n{line.label}\n", style="bold")
        for place, token in enumerate(line.tokens):
            ground = _GROUNDS[token.span or 0][place % 2]
            style = f"{'bold' if token.control else 'not bold'} black on {ground}"
            text.append(token.marked, style=f"{style} italic" if token.masked else style)
            if token.text.endswith("⏎"):
                text.append("\n")
        text.append("\n")
    return text


def show_row(request: Request) -> Iterator[Text]:
    """Yield the row of a Harmony shard that a person asks for."""
    shard, _ = shard_and_split(request)
    yield row_text(request.path, shard, request.number, vocabulary_of(request.path))


def show_document(request: Request) -> Iterator[Text]:
    """Yield the document of a Megatron dataset that a person asks for."""
    vocabulary = vocabulary_of(request.path)
    yield document_text(request.path, *shard_and_split(request), request.number, vocabulary)


def show_distilled(request: Request) -> Iterator[Text]:
    """Yield the row of a dataset of labels and spans that a person asks for."""
    _, split = shard_and_split(request)
    vocabulary = vocabulary_of(request.path)
    yield _text(*tokens.distilled(request.path, split, request.number, vocabulary))


def vocabulary_of(path: Path) -> Path:
    """The vocabulary of an artifact, in the data root above it. Raises what `find` raises."""
    above = path.absolute().parents
    root = next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])
    record = path / RECORD
    own = read_record(record).tokenizer if record.is_file() else None
    if own is not None and own.name != O200K.name:
        return root / own.path
    return find(O200K, root)

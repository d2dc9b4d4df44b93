"""A conversation as coloured tokens in a terminal, from a Harmony shard or a Megatron dataset.

Pictures for Dagster's UI belong to `chips.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput
from gristmill.printable import printable
from gristmill.synth.build.harmony import shard_name
from gristmill.synth.build.kd_part import OPTIONAL, REQUIRED, open_shard
from gristmill.synth.format import indexed, parquet
from gristmill.synth.render import documents
from gristmill.synth.render.templates import BadRow, Renderer
from gristmill.synth.show import tokens
from gristmill.synth.show.tokens import Line

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.text import Text

# Two shades of each span, so that neighbouring tokens can be told apart.
_GROUNDS: Final = (
    ("grey85", "grey78"),
    ("navajo_white1", "light_goldenrod2"),
    ("pale_green1", "dark_sea_green2"),
)


def document_text(root: Path, number: str, split: str, document: int, vocabulary: Path) -> Text:
    """One document of a dataset. BadInput where there is no such document."""
    prefix = root / split / f"shard_{number}_tokens"
    if not prefix.with_name(prefix.name + ".idx").exists():
        raise BadInput(prefix, f"shard {number} has no {split} split")
    held = len(indexed.read(prefix))
    if not 0 <= document < held:
        raise BadInput(prefix, f"holds documents 0 to {held - 1}, not {document}")
    title, lines = tokens.conversation(root, number, split, document, vocabulary, whole=True)
    return _text(title, lines)


def row_text(folder: Path, number: str, row: int, vocabulary: Path) -> Text:
    """One row, counted from 0, of a Harmony shard as it is rendered; BadInput if it cannot be."""
    shard = folder / shard_name(number)
    if not shard.is_file():
        raise BadInput(shard, "there is no such shard")
    found = _row(shard, row)
    try:
        made = documents.assemble([Renderer(vocabulary).read(found["messages_json"])], vocabulary)
    except (BadRow, ValueError) as error:
        raise BadInput(shard, f"synth_id {found['synth_id']!r}: {error}", row + 1) from error
    edges = [0, *np.cumsum(made.runs).tolist()]
    span = made.span.tolist()
    mask = [int(value != 0) for value in span]
    lines = tokens.lines(made.tokens.tolist(), mask, span, list(pairwise(edges)), vocabulary, True)
    about = [found.get(name) for name in ("language", "exercise")]
    title = f"{shard.name} row {row + 1} · {found['synth_id']} · {len(span):,} tokens"
    whole_title = " · ".join([title, *(str(name) for name in about if name)])
    return _text(printable(whole_title), lines)


def _row(shard: Path, row: int) -> dict[str, Any]:
    """What the builder reads of one row; BadInput where it is not there or not UTF-8."""
    with open_shard(shard) as file:
        columns = [name for name in (*REQUIRED, *OPTIONAL) if name in file.schema_arrow.names]
        before = 0
        for group in range(file.num_row_groups):
            held = file.metadata.row_group(group).num_rows
            if before <= row < before + held:
                for batch in parquet.batches(shard, file, 1024, columns, [group], before):
                    if row < before + len(batch):
                        return _values(shard, batch.slice(row - before, 1), row)
                    before += len(batch)
            before += held
    raise BadInput(shard, f"holds rows 0 to {before - 1}, not {row}")


def _values(shard: Path, batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    found = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        (found[name],), broken = parquet.values(column)
        if broken:
            raise BadInput(shard, f"{name} is not UTF-8: {broken[0]}", row + 1)
    return found


def _text(title: str, lines: Sequence[Line]) -> Text:
    from rich.text import Text

    text = Text(f"{title}\n", style="bold")
    for span, name in enumerate(("prompt", "reasoning", "final")):
        text.append(f" {name} ", style=f"not bold black on {_GROUNDS[span][0]}")
        text.append(" ")
    text.append("italic: masked, not in the loss\n", style="not bold italic")
    for line in lines:
        text.append(f"\n{line.label}\n", style="bold")
        for place, chip in enumerate(line.chips):
            ground = _GROUNDS[chip.span or 0][place % 2]
            style = f"{'bold' if chip.control else 'not bold'} black on {ground}"
            text.append(chip.text, style=f"{style} italic" if chip.masked else style)
            if chip.text.endswith("⏎"):
                text.append("\n")
        text.append("\n")
    return text

"""A normalised record, an example's tokens, its steps and a report, for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput
from gristmill.families import Misuse, Request
from gristmill.printable import printable
from gristmill.reasoning.format import names, reports
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.show.place import chosen, normalized_beside, read_record
from gristmill.reasoning.show.preview import COLUMNS, number

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

# Two shades, so that a person sees where one token ends and the next begins.
_GROUNDS: Final = ("grey85", "pale_turquoise1")
_SHORT: Final = {
    "examples": "examples",
    "total_tokens": "tokens",
    "avg_seq_len": "mean",
    "pct_with_cot": "CoT %",
    "alignment_coverage": "aligned",
    "mean_confidence": "sure",
    "low_confidence_share": "<0.9",
}
"""Columns of a report in a terminal of 80 columns."""


def show_record(request: Request) -> Iterator[Text]:
    """A normalised record: its keys and values. Raises BadInput where there is no such record."""
    place = chosen(request, splits_in(request.path, "{split}.jsonl"))
    yield _values(place.example_id, read_record(request.path, place))


def show_example(request: Request) -> Iterator[Text]:
    """The tokens of an example, each on a ground of its own, as the shards hold them.

    Bytes that are no character are shown in hexadecimal. Raises BadInput where there is no such
    example, or where a shard is damaged.
    """
    from rich.text import Text

    from gristmill.reasoning.format import id_files
    from gristmill.reasoning.format.index import rows
    from gristmill.reasoning.read.trace import tokenizer_of

    place = chosen(request, splits_in(request.path, "{split}/index.jsonl"))
    path = request.path / names.split_index(place.corpus, place.split)
    row = next((row for row in rows(path) if row.example_id == place.example_id), None)
    if row is None:
        raise BadInput(path, f"has no row {place.example_id}: the record may render to no text")
    tokenizer = tokenizer_of(request.path, data_root(request.path))
    text = Text(f"{place.example_id}  {row.num_tokens:,} tokens\n", style="bold")
    shown = 0
    for span in row.spans:
        corpus_split = f"{place.corpus}/{place.split}"
        shard = id_files.of_path(request.path / corpus_split / Path(span.shard_path).name)
        for token in shard[span.sequence_index, span.start : span.end].tolist():
            if shown == row.num_tokens:
                text.append(tokenizer.eod_text, style="reverse")
                break
            text.append(
                _shown(tokenizer.token_bytes[token]), style=f"black on {_GROUNDS[shown % 2]}"
            )
            shown += 1
    yield text


def show_steps(request: Request) -> Iterator[Text]:
    """An example with its steps in colours.

    request: path is the folder of the alignments; the normalised files are beside it.
    """
    from gristmill.reasoning.format import align
    from gristmill.reasoning.show import spans

    place = chosen(request, splits_in(request.path, "{split}.align.jsonl"))
    path = request.path / names.alignment(place.corpus, place.split)
    row = next((row for row in align.rows(path) if row.example_id == place.example_id), None)
    if row is None:
        raise BadInput(path, f"has no row {place.example_id}: the record may render to no text")
    yield spans.terminal(row, read_record(normalized_beside(request.path), place))


def report_shown(request: Request) -> Iterator[RenderableType]:
    """A daily report: its splits and token datasets, and what is outside of a tolerance.

    request: path is the folder of the reports; the sample is a day, as 2026-11-22, or 0 for the
        newest one.
    """
    from rich.table import Table
    from rich.text import Text

    days = reports.dates(request.path)
    if request.sample != "0":
        days = [day for day in days if day == request.sample]
    if not days:
        raise Misuse(f"{request.path}: has no report of {request.sample}")
    report = reports.read(reports.path(request.path, days[-1]))
    table = Table(title=days[-1], box=None, pad_edge=False, collapse_padding=True)
    table.add_column("split", no_wrap=True)
    for column in COLUMNS:
        table.add_column(_SHORT[column], justify="right", no_wrap=True)
    for name, split in reports.all_splits(report).items():
        table.add_row(printable(name), *(number(split.get(column)) for column in COLUMNS))
    yield table
    for name, dataset in report.get(reports.DATASETS, {}).items():
        tokens = number(dataset["totals"].get("total_tokens"))
        yield Text(f"dataset {printable(name)}: {tokens} {printable(dataset['tokenizer'])} tokens")
    for title in ("warnings", "breaches"):
        for line in report["warnings"] if title == "warnings" else report["gate"]["breaches"]:
            yield Text(f"{title}: {printable(str(line))}")
    baseline = report["gate"]["baseline"]
    passed = "passed" if report["gate"]["passed"] else "did not pass"
    yield Text(f"gate: {passed}, {f'compared with {baseline}' if baseline else 'no baseline'}")


def data_root(path: Path) -> Path:
    """The data root above an artifact: the nearest folder with a vocabulary, else its parent."""
    above = path.absolute().parents
    return next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])


def _values(title: str, values: dict[str, Any]) -> Text:
    from rich.text import Text

    text = Text(f"{title}\n", style="bold")
    for name, value in values.items():
        text.append(f"{printable(name)}: ", style="bold cyan")
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
        text.append("\n".join(map(printable, shown.split("\n"))) + "\n")
    return text


def _shown(octets: bytes) -> str:
    try:
        characters = octets.decode()
    except UnicodeDecodeError:
        return f"‹{octets.hex()}›"
    return "".join(_visible(characters))


def _visible(characters: str) -> Iterator[str]:
    for character in characters:
        if character == "\n":
            yield "\n"
        elif character.isprintable():
            yield character
        else:
            yield f"‹U+{ord(character):04X}›"


def show_spans(request: Request) -> Iterator[RenderableType]:
    """Yield a record with its annotations: expressions and results in colours."""
    from rich.text import Text

    from gristmill.reasoning.render.annotations import rows_of, text_with_answer

    place = chosen(request, splits_in(request.path, "{split}.spans.jsonl"))
    path = request.path / names.spans(place.corpus, place.split)
    found = [row for row in rows_of(path) if row["example_id"] == place.example_id]
    if not found:
        raise BadInput(path, f"has no row {place.example_id}: the record has no annotation")
    shown = text_with_answer(read_record(normalized_beside(request.path), place))
    text = Text("".join(_visible(shown)) if shown.isprintable() else shown)
    for row in found:
        for name, style in (("expression", "bold cyan"), ("result", "bold green")):
            text.stylize(style, *row["characters"][name])
    yield Text(f"{place.example_id}  {len(found)} annotations, {found[0]['part']}", style="bold")
    yield text
    for row in found:
        tokens = row["tokens"]["result"]
        yield Text(f"{row['ann_text']}  result: tokens {tokens[0]}-{tokens[1]} {row['skipped']}")


def show_files(request: Request) -> Iterator[RenderableType]:
    """Yield the files of an exported dataset with their sizes."""
    from rich.table import Table

    table = Table("file", "bytes", box=None)
    for path in sorted(each for each in request.path.glob("*/**/*") if each.is_file()):
        name = path.relative_to(request.path).as_posix()
        table.add_row(printable(name), f"{path.stat().st_size:,}")
    yield table

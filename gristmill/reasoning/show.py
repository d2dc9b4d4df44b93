"""Columns, facts and tables of artifacts, and where a row comes from, for `show` and `/browse`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from html import escape
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unicodedata import east_asian_width

from gristmill import markdown
from gristmill.browse.columns import of_parquet
from gristmill.browse.lines import Form, json_row
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token, colours
from gristmill.contract import GristmillError
from gristmill.corpora import split_file
from gristmill.corpora.raw.chat.recipe import KEPT
from gristmill.families import Column
from gristmill.printable import printable
from gristmill.reading.reader import Ranges, counted, file_facts
from gristmill.reasoning.format import align, id_files, leaks, names, reports
from gristmill.reasoning.format import reports as conversations
from gristmill.reasoning.format.align import AlignRow
from gristmill.reasoning.format.index import Numbers
from gristmill.reasoning.format.published import (
    ALIGNMENT,
    EXPORTS,
    LEAKS,
    NORMALIZED,
    SHARDS,
    TOKENS,
    shard_splits,
    splits_in,
)
from gristmill.reasoning.read.trace import (
    FILES,
    parsed,
    record_at,
    rows_of_files,
    tokenizer_of,
    tokens_of,
)
from gristmill.reasoning.render.text import text_of
from gristmill.svg import SOFT, small_card, small_text

if TYPE_CHECKING:
    from gristmill.browse.opening import Files
    from gristmill.vocabularies.tokenizer import Tokenizer

_EXAMPLE = Column("example_id", "string", "<corpus>_<split>_<record>")
_SHARD = Column("shard_path", "string", "shard with the first token of the example")
_SEQUENCE = Column("sequence_index", "integer", "row of that token in the shard")

_INDEX = (
    _EXAMPLE,
    _SHARD,
    _SEQUENCE,
    Column("token_start", "integer", "column of that token"),
    Column("num_tokens", "integer", "tokens of the text"),
    Column("num_tokens_with_eos", "integer", "one more"),
    Column("spans", "array of object", "where all its tokens are: shard, row, columns"),
    Column("rank", "integer", "the rank that packed it"),
    Column("text_sha256", "string", "of the rendered text in UTF-8"),
    Column("extras", "object", "difficulty, subject, dataset, source, where there are any"),
)

_COLUMNS = {
    LEAKS: leaks.COLUMNS,
    "reasoning/normalized": (
        Column("question", "string", "never blank"),
        Column("answer", "string", "the final answer; may be empty where there is a cot"),
        Column("cot", "string or null", "the chain of thought"),
        Column("source_dataset", "string", "name of the corpus"),
        Column("cot_steps", "array of string", "only where the cot was a list"),
        Column("(extras)", "string or null", "further keys of the corpus, as difficulty"),
    ),
    "chat/conversations": (
        Column("messages_json", "string", "JSON with the messages: role, content, channel"),
        Column("synth_id", "string", "id of the row, else a hash of the messages"),
        Column("spans", "string", "a code for each message: 0 prompt, 1 reasoning, 2 final"),
        Column("split", "string", "train or validation"),
        Column("file", "string", "raw file, by its path in the drop"),
        Column("row", "int64", "row in it, from 1"),
        *(Column(name, "string or null", "of the row, by the recipe of SYNTH") for name in KEPT),
    ),
    "reasoning/gpt2_shards": (
        Column("input_ids", "int32[seq_len]", "the sequences of shard_NNNNN.pt"),
        *_INDEX,
    ),
    "reasoning/tokens": (
        Column("input_ids", "uint16 or int32[seq_len]", "the sequences of shard_NNNNN.bin"),
        *_INDEX,
    ),
    "reasoning/spans": (
        Column("trace_id", "string", "<corpus>_<split>_<row of the raw file, from 0>"),
        _EXAMPLE,
        Column("example_idx", "integer", "row of the raw file, from 0"),
        Column("raw_file", "integer", "number of the raw file, from 0"),
        Column("ann_idx", "integer", "number of the annotation in its record, from 0"),
        Column("ann_text", "string", "the annotation with its brackets"),
        Column("expr_str", "string", "its expression"),
        Column("C", "number", "its result"),
        Column("log_abs_C", "number", "logarithm of one more than the size of the result"),
        Column("magnitude", "string", "[0,10) [10,100) [100,1000) [1000+)"),
        Column("characters", "object", "ranges of characters of its parts, half-open"),
        Column("bytes", "object", "the same in bytes of UTF-8"),
        Column("tokens", "object", "the same in tokens"),
        Column("result_token_count", "integer", "tokens that the result shares a byte with"),
        Column("result_token_id", "integer", "the first of these"),
        Column("skipped", "string", "multi_token_result, token_alignment, or empty"),
        Column("part", "string", "calibration or evaluation, by trace"),
    ),
    "reasoning/exports": (Column("text", "string", "of nanochat: a rendered record"),),
    "reasoning/alignment": (
        _EXAMPLE,
        _SEQUENCE,
        _SHARD,
        Column("text_offset_ranges", "array of [int, int]", "characters of each step, half-open"),
        Column("token_offset_ranges", "array of [int, int]", "tokens of each step, half-open"),
        Column("step_labels", "array of string", "label of each step"),
        Column("confidence", "number", "of the least certain step, from 0 to 1"),
        Column("notes", "string", "the rule that found the steps, and the state of the audit"),
    ),
}


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables."""
    return _COLUMNS.get(asset, ())


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the files of each split with their lines, or its shards with shape and ids.

    Raises BadInput where a file cannot be read.
    """
    for corpus, split in shard_splits(folder) if asset in (SHARDS, TOKENS) else ():
        ranges, shapes = Ranges(), dict[tuple[int, ...], int]()
        inside = folder / corpus / split
        endings = (".pt", *id_files.SUFFIXES)
        several = (sorted(inside.glob(f"shard_*{ending}")) for ending in endings)
        for shard in next(filter(None, several), []):
            ids = id_files.of_path(shard)
            shapes[ids.shape] = shapes.get(ids.shape, 0) + 1
            ranges.add(ids, "ids")
        listed = [f"{counted(count, 'shard')} of {list(each)}" for each, count in shapes.items()]
        yield f"{corpus}/{split}: {'; '.join([*listed, *ranges.lines()])}"
    for path in conversations.shards(folder) if asset == "chat/conversations" else ():
        import pyarrow.parquet as pq

        where = path.relative_to(folder).as_posix()
        yield f"{where}: {counted(pq.read_metadata(path).num_rows, 'conversation')}"
    for path in sorted(folder.glob("*/**/*")) if asset == EXPORTS else ():
        if path.suffix in (".bin", ".parquet"):
            yield f"{path.relative_to(folder).as_posix()}: {path.stat().st_size:,} bytes"
    if asset == "reasoning/qc_report":
        yield f"reports of {', '.join(reports.dates(folder))}"
    every = (path for each in ("*/*.jsonl", "*/*/[0-9]*.jsonl") for path in folder.glob(each))
    found = {path.relative_to(folder).as_posix() for path in every}
    yield from file_facts(folder, (*sorted(found), names.INDEX, names.MANIFEST, leaks.ROWS))


_COLOURS = ("#e3e7ea", "#ffe3a3", "#cfe6c9", "#f6d0c8", "#e2d4f0", "#cbdff5")
"""Of the labels of steps, as `colours` numbers them."""
_MOST = 9
"""Steps of a picture."""


def pieces(row: AlignRow, text: str) -> Iterator[Token]:
    """Yield a text in pieces of a line at most, each with the label of its step.

    Ranges that the text does not have are left out.
    """
    for start, end, label in _parts(row, len(text)):
        *lines, last = text[start:end].split("\n")
        yield from (Token(f"{printable(line)}\n", span=label) for line in lines)
        if last:
            yield Token(printable(last), span=label)


def picture(row: AlignRow, text: str) -> Picture:
    """The first steps of an example, a line each: as many as Dagster shows inline."""
    steps = [part for part in _parts(row, len(text)) if part[2]]
    fills = colours(label for *_, label in steps)
    head = [
        small_text(10, 20, row.example_id, " font-weight='700'"),
        small_text(10, 37, f"{row.confidence:g} · {row.notes}", f" fill='{SOFT}'"),
    ]
    for count in range(min(_MOST, len(steps)), -1, -1):
        lines = [
            small_text(
                10,
                56 + 17 * at,
                f"{label}: {text[start:end]}",
                f" fill='{_COLOURS[fills[label]]}'",
            )
            for at, (start, end, label) in enumerate(steps[:count])
        ]
        drawing = small_card(48 + 17 * count, [*head, *lines])
        if len(markdown.image("steps", drawing)) <= markdown.INLINE:
            break
    return Picture("steps", drawing)


def _parts(row: AlignRow, length: int) -> Iterator[tuple[int, int, str]]:
    """Yield consecutive ranges of a text up to `length`, with the label of the step or nothing."""
    place = 0
    for (first, last), label in zip(row.text_offset_ranges, row.step_labels, strict=False):
        start, end = max(first, place), min(last, length)
        if start < end:
            yield place, start, ""
            yield start, end, printable(label)
            place = end
    yield place, length, ""


_COLUMN, _LINE, _MOST_LINES = 46, 16, 24
"""Characters of a line of a side, and pixels from one to the next; lines of a side at most."""
_MARK: Final = " fill='#ffd24d' font-weight='700'"


def sides(row: Record) -> list[Picture]:
    """A text and the question that it holds, side by side; what both share is marked."""
    width, body, most = int(_COLUMN * 7.3) + 20, list[str](), 0
    for at, (side, title) in enumerate(leaks.SIDES.items()):
        place, file, number, column, text, marks = (
            row.values[f"{side}{name}"]
            for name in ("place", "file", "row", "column", "text", "marks")
        )
        x = 10 + at * width
        head = (f"{title}: {place}", f"{file} row {number} {column}")
        body += [
            small_text(x, 20 + 16 * line, each, f" fill='{SOFT}'", width - 20)
            for line, each in enumerate(head)
        ]
        lines = list(_lines(text, marks))
        most = max(most, len(lines))
        body += [
            f"<text x='{x}' y='{60 + _LINE * line}' font-family='monospace'"
            f" xml:space='preserve'>{each}</text>"
            for line, each in enumerate(lines)
        ]
    name = f"{row.values['share']:.0%} of the question's own runs stand in the text"
    name += ", with other names or numbers" if row.values["changed"] else ""
    return [Picture(name, small_card(56 + _LINE * most, body, 2 * width), wide=True)]


def _lines(text: str, marks: Sequence[Sequence[int]]) -> Iterator[str]:
    """Yield the lines of a side as elements; a wide character takes two places."""
    is_marked = bytearray(len(text))
    for begin, end in marks:
        is_marked[begin:end] = b"\1" * (end - begin)
    line, used, count = list[tuple[str, int]](), 0, 0
    for char, mark in zip(text, is_marked, strict=True):
        size = 1 + (east_asian_width(char) in "WF")
        shown = " " if char.isspace() else printable(char)
        if used + size > _COLUMN:
            ends = [at for at, (each, _) in enumerate([*line, (shown, 0)]) if each == " "]
            at = ends[-1] if ends else len(line)
            yield _line(line[:at])
            line, count = line[at + 1 :] if ends else [], count + 1
            used = sum(1 + (east_asian_width(each) in "WF") for each, _ in line)
            if count == _MOST_LINES:
                return
        if line or shown != " ":
            line.append((shown, mark))
            used += size
    yield _line(line)


def _line(line: Sequence[tuple[str, int]]) -> str:
    pieces = groupby(line, lambda each: each[1])
    return "".join(
        f"<tspan{_MARK if mark else ''}>{escape(''.join(char for char, _ in piece))}</tspan>"
        for mark, piece in pieces
    )


_SEARCHABLE: Final = (
    *("question", "answer", "cot", "cot_steps", "source_dataset", "example_id", "subject"),
    *("step_labels", "notes", "text", "extras.subject", "extras.source", "extras.dataset"),
    *("messages_json", "synth_id", "trace_id", "ann_text", "expr_str", "skipped", "part"),
    *("place", "question_text"),
)


def tables(asset: str, folder: Path, files: Files) -> list[Stored]:
    """Returns a table for each split; none for manifests and reports, which are JSON files."""
    if asset == "chat/conversations":
        return [*_talks(folder, files)]
    if asset == EXPORTS:
        texts = sorted(folder.glob("nanochat/*.parquet"))
        return [_parquet(files, f"nanochat/{path.name}") for path in texts]
    if asset == LEAKS:
        rows = Stored(
            "leaks",
            lambda: files.lines(leaks.ROWS, Form(json_row)),
            _SEARCHABLE,
            pictures=sides,
        )
        return [rows]
    found = splits_in(folder, FILES[asset]) if asset in FILES else ()
    return [each for key in found for each in _of_split(asset, folder, files, key)]


def _of_split(asset: str, folder: Path, files: Files, key: str) -> Iterator[Stored]:
    """The table of a split, or one for each of its parts."""
    corpus, split = key.rsplit("__", 1)
    path = folder / f"{corpus}/{FILES[asset].format(split=split)}"
    several = split_file.files(path)
    for at, part in enumerate(several):
        table = _table(asset, folder, files, corpus, split, several, at)
        yield table if part == path else replace(table, name=f"{key}__{part.stem}")


def _talks(folder: Path, files: Files) -> Iterator[Stored]:
    """The tables of the shards of conversations, one for each of their parts."""
    first = 0
    for path in reports.shards(folder):
        yield _of_shard(folder, files, path, first)
        if path.parent != folder:
            import pyarrow.parquet as pq

            first += pq.read_metadata(path).num_rows


def _of_shard(folder: Path, files: Files, path: Path, first: int) -> Stored:
    """The table of a shard, or of a part of it. first: the rows of the parts before it."""
    stem = path.stem if path.parent == folder else f"{path.parent.name}__{path.stem}"
    name = path.relative_to(folder).as_posix()
    number = stem.removeprefix("shard_")
    return Stored(
        number,
        lambda: of_parquet(files.checked(name)),
        _SEARCHABLE,
        sample=lambda row: (str(first + row.number), {}),
        chosen={"shard": number},
        ids=("synth_id",),
    )


def _parquet(files: Files, path: str) -> Stored:
    shard = {"shard": Path(path).stem.removeprefix("shard_")}
    return Stored(
        path,
        lambda: of_parquet(files.checked(path)),
        _SEARCHABLE,
        sample=lambda row: (str(row.number), shard),
        chosen=shard,
    )


def _table(
    asset: str,
    folder: Path,
    files: Files,
    corpus: str,
    split: str,
    several: Sequence[Path],
    part: int,
) -> Stored:
    """The table of a split, or of a part of it. several: all its files. part: which of them."""
    name = several[part].relative_to(folder).as_posix()
    form, shown = Form(json_row), dict[str, Any]()
    if asset == ALIGNMENT:
        shown = {
            "pictures": lambda row: [picture(*each) for each in _example(folder, row)],
            "tokens": lambda row: [one for each in _example(folder, row) for one in pieces(*each)],
        }
    if FILES[asset].endswith(names.INDEX) and (decode := _decoder(folder)) is not None:
        held = _Tokens(folder, decode)
        form, shown = Form(json_row, more={"text": held.text}), {"tokens": held.shown}
    chosen = {"corpus": corpus, "split": split}

    jsonl = folder / names.normalized(corpus, split)

    @cache
    def own() -> range:
        """The places of its records; where the split has no parts nobody counts them."""
        if len(several) == 1:
            return range(sys.maxsize)
        *before, count = islice(rows_of_files(folder, f"{corpus}__{split}", several), part + 1)
        return range(sum(before), sum(before) + count)

    def sample(row: Record) -> tuple[str, Mapping[str, Any]]:
        number = row.number
        if asset == NORMALIZED:
            number = Numbers(jsonl).of(own()[row.number])
        return str(row.values.get("example_id") or number), chosen

    def named(sample: str) -> int | Sequence[str]:
        place = parsed(sample)
        if place is None or place[:2] != (corpus, split):
            return ()
        if asset != NORMALIZED:
            return ("example_id",)
        at = Numbers(jsonl).place(place.record)
        return () if at is None or at not in own() else own().index(at)

    return Stored(
        f"{corpus}__{split}",
        lambda: files.lines(name, form),
        _SEARCHABLE,
        slow=[*form.more],
        partition="" if asset == TOKENS else f"{corpus}__{split}",
        sample=sample,
        chosen=chosen,
        ids=() if asset == NORMALIZED else ("example_id",),
        named=named,
        **shown,
    )


def _decoder(folder: Path) -> Callable[[], Tokenizer] | None:
    """Gives the tokenizer of the shards when it is needed; None where it is not to be had."""
    try:
        tokenizer = tokenizer_of(folder, data_root(folder))
    except GristmillError:
        return None
    return lambda: tokenizer


class _Tokens:
    """The tokens of the examples of a split, as its shards hold them."""

    def __init__(self, folder: Path, decode: Callable[[], Tokenizer]) -> None:
        self._folder, self._decode = folder, decode
        self._mapped = lru_cache(64)(id_files.of_path)

    def ids(self, values: Mapping[str, Any]) -> list[int]:
        """The tokens of a row of the index, the last one apart."""
        tokenizer = self._decode()
        known = range(tokenizer.size)
        found = tokens_of(self._folder, values, self._mapped).tolist()
        return [token for token in found if token in known and token != tokenizer.eod]

    def text(self, values: Mapping[str, Any]) -> str:
        pieces = self._decode().token_bytes
        return b"".join(pieces[token] for token in self.ids(values)).decode("utf-8", "replace")

    def shown(self, row: Record) -> Sequence[Token]:
        one = self._decode().token_bytes
        return [Token(_visible(one[token]), token) for token in self.ids(row.values)]


def _visible(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return f"‹{octets.hex()}›"


def _example(folder: Path, row: Record) -> Iterator[tuple[align.AlignRow, str]]:
    """Yield a row of an alignment with its text, nothing where its record is not there."""
    place = parsed(str(row.values["example_id"]))
    normalized = folder.absolute().parent / Path(names.NORMALIZED).name
    if place is not None and split_file.is_there(normalized / names.normalized(*place[:2])):
        found = align.AlignRow(**{key: row.values[key] for key in align.KEYS})
        yield found, text_of(record_at(normalized, place.partition, place.record)[0])


def data_root(path: Path) -> Path:
    """The data root above an artifact: the nearest folder with a vocabulary, else its parent."""
    above = path.absolute().parents
    return next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])

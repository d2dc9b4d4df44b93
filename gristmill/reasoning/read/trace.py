"""From a token or an id of the index back to the row of the raw file.

Source: `docs/formats/reasoning.md#trace`.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from gristmill import contract
from gristmill.contract import BadInput, GristmillError
from gristmill.corpora import records
from gristmill.corpora.corpus import corpus_and_split, is_key
from gristmill.corpora.raw.rows import row_bytes
from gristmill.corpora.split_file import files, is_there, lines, located, opened
from gristmill.families import Misuse, Request
from gristmill.hashing import kept
from gristmill.printable import printable
from gristmill.provenance import read_record, record_path
from gristmill.provenance.trace_inputs import Edge, NotTraced, Origin, Row, Steps, source, walk
from gristmill.reading.reader import lines_from
from gristmill.reasoning.format import align, id_files, names, published, reports
from gristmill.reasoning.format.index import Numbers, below_tokenized, mapped
from gristmill.reasoning.format.index import parsed as parsed_line
from gristmill.reasoning.format.published import ALIGNMENT, EXPORTS, NORMALIZED, SHARDS, TOKENS
from gristmill.reasoning.format.shards import Shard, read_meta
from gristmill.reasoning.render.annotations import rows_of
from gristmill.reasoning.render.regions import Projection
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.pinned import GPT2, PLACE, find
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer

_SAID_BY_A_SCAN: Final = BadInput, OSError, ValueError, LookupError, TypeError, AttributeError
"""What is wrong with a line that was found by bisecting: a scan says it with its number."""


_ids = partial(kept, id_files.of_path)

FILES: Final = {
    NORMALIZED: "{split}.jsonl",
    SHARDS: "{split}/index.jsonl",
    TOKENS: "{split}/index.jsonl",
    ALIGNMENT: "{split}.align.jsonl",
    published.SPANS: "{split}.spans.jsonl",
}
"""The file of a split, below the folder of its corpus."""


class Place(NamedTuple):
    """An example. record: its number, see `format.index.Numbers`."""

    corpus: str
    split: str
    record: int

    @property
    def partition(self) -> str:
        """Key of the partition."""
        return f"{self.corpus}__{self.split}"

    @property
    def example_id(self) -> str:
        """Id of the example."""
        return names.example_id(*self)


def parsed(sample: str) -> Place | None:
    """The example of an id, None for a text that is no id."""
    corpus, split, digits = ["", "", *sample.rsplit("_", 2)][-3:]
    if is_key(f"{corpus}__{split}") and len(digits) < 20 and digits.isascii() and digits.isdigit():
        place = Place(corpus, split, int(digits))
        return place if place.example_id == sample else None
    return None


def place_of(example_id: str) -> Place:
    """As `parsed`. Raises GristmillError for a text that is no id."""
    if (place := parsed(example_id)) is None:
        raise GristmillError(
            f"{printable(example_id)}: is no id of an example, as gsm8k_test_000012"
        )
    return place


@dataclass(frozen=True)
class Trace(contract.Trace):
    """Where a token or an example is.

    example_id: of the example.
    record: its number.
    shard, sequence, column: place of the token, or of the first one.
    token: its number in the example, from 0; the EOS is the last one.
    id: of the token.
    num_tokens: of the example, without EOS.
    text_sha256: hex, of the rendered text.
    """

    example_id: str
    record: int
    shard: str
    sequence: int
    column: int
    token: int
    id: int
    num_tokens: int
    text_sha256: str


_Token = tuple[Mapping[str, Any], int]
"""The line of an example in the index, and the number of a token of it."""


def trace(tokenized: Path, partition: str, shard: int, row: int, token: int) -> Trace:
    """Trace one token of a sequence.

    tokenized: the folder of all shards.
    partition: key of the split.
    shard: number of the shard. row: of the sequence in it, from 0.
    token: column in the sequence, from 0.

    Raises BadInput where there is no such token, or it is padding.
    """
    return _trace(tokenized, *_token_at(tokenized, partition, shard, row, token))


def _token_at(tokenized: Path, partition: str, shard: int, row: int, token: int) -> _Token:
    corpus, split = corpus_and_split(partition)
    several = [names.shard(corpus.name, split, shard, each) for each in (".pt", *id_files.SUFFIXES)]
    path = next((each for each in several if (tokenized / each).is_file()), several[0])
    if not (tokenized / path).is_file():
        raise BadInput(tokenized / path, "there is no such shard")
    shape = id_files.of_path(tokenized / path).shape
    if not (0 <= row < shape[0] and 0 <= token < shape[1]):
        rule = f"has {shape[0]} sequences of {shape[1]} tokens, no token {token} of sequence {row}"
        raise BadInput(tokenized / path, rule)
    for values, before, span in _of_row(tokenized, partition, path, row):
        if span["start"] <= token < span["end"]:
            return values, before + token - span["start"]
    raise BadInput(tokenized / path, f"token {token} of sequence {row} is padding: no example's")


def traces_of_row(tokenized: Path, partition: str, path: str, row: int) -> Iterator[Trace]:
    """Trace each example of a sequence, by its first token there, in the order of the index.

    path: of the shard below `tokenized`. row: of the sequence in it, from 0.
    """
    for values, before, _ in _of_row(tokenized, partition, path, row):
        yield _trace(tokenized, values, before)


def _of_row(
    tokenized: Path, partition: str, path: str, row: int
) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
    """Each line of the index with a span in a sequence, the tokens before the span, the span."""
    corpus, split = corpus_and_split(partition)
    index = tokenized / names.split_index(corpus.name, split)
    for values in _lines_of_row(index, path, row, id_files.of_path(tokenized / path).shape[1]):
        before = 0
        for span in values["spans"]:
            if below_tokenized(span["shard_path"]) == path and span["sequence_index"] == row:
                yield values, before, span
            before += span["end"] - span["start"]


def _lines_of_row(index: Path, path: str, row: int, columns: int) -> list[dict[str, Any]]:
    """The lines with a span in a sequence; by a scan where bisecting may miss one."""
    wanted, found, filled = (path, row), list[dict[str, Any]](), 0

    def last(line: bytes) -> tuple[str, int]:
        return _place(orjson.loads(line)["spans"][-1])

    with suppress(*_SAID_BY_A_SCAN), opened(index) as file:
        for line in lines_from(file, last, wanted):
            values = parsed_line(line, index, 0)
            spans = [span for span in values["spans"] if _place(span) == wanted]
            if not spans or spans[0]["start"] != filled:
                break
            found.append(values)
            filled = spans[0]["end"]
    if filled == columns:
        return found
    return list(_lines(index, f'{path}", "sequence_index": {row}, "start": '.encode()))


def _place(span: Mapping[str, Any]) -> tuple[str, int]:
    return below_tokenized(span["shard_path"]), span["sequence_index"]


def _token_of(tokenized: Path, partition: str, example_id: str, token: int) -> _Token:
    values = line_of(tokenized, partition, example_id)
    count = values["num_tokens_with_eos"]
    if not 0 <= token < count:
        rule = f"{example_id} has {count} tokens with its end, no token {token}"
        raise BadInput(tokenized, rule)
    return values, token


def tokens_of(
    tokenized: Path,
    values: Mapping[str, Any],
    mapped: Callable[[Path], id_files.Ids] = _ids,
) -> id_files.Ids:
    """The tokens of an example with its EOS, from its spans. mapped: opens a shard."""
    found = [
        mapped(tokenized / below_tokenized(span["shard_path"]))[
            span["sequence_index"], span["start"] : span["end"]
        ]
        for span in values["spans"]
    ]
    return np.concatenate(found)


def line_of(tokenized: Path, partition: str, example_id: str) -> dict[str, Any]:
    """The line of an example in the index. Raises BadInput where there is none."""
    corpus, split = corpus_and_split(partition)
    path = tokenized / names.split_index(corpus.name, split)
    start = f'{{"example_id": "{example_id}"'.encode()
    with suppress(*_SAID_BY_A_SCAN), opened(path) as file:
        line = next(lines_from(file, _record_of, int(example_id.rpartition("_")[2])), b"")
        if line.startswith(start):
            return parsed_line(line, path, 0)
    for values in _lines(path, start):
        return values
    raise BadInput(path, f"has no example {example_id!r}: it is not in the split, or has no text")


def _record_of(line: bytes) -> int:
    return int(orjson.loads(line)["example_id"].rpartition("_")[2])


def _trace(tokenized: Path, values: Mapping[str, Any], token: int) -> Trace:
    left = token
    for span in values["spans"]:
        size = span["end"] - span["start"]
        if left < size:
            break
        left -= size
    path, row, column = span["shard_path"], span["sequence_index"], span["start"] + left
    ids = _ids(tokenized / below_tokenized(path))
    return Trace(
        example_id=values["example_id"],
        record=int(values["example_id"].rpartition("_")[2]),
        shard=path,
        sequence=row,
        column=column,
        token=token,
        id=int(ids[row, column]),
        num_tokens=values["num_tokens"],
        text_sha256=values["text_sha256"],
    )


def _lines(path: Path, wanted: bytes) -> Iterator[dict[str, Any]]:
    """The lines that hold some bytes, as objects. Raises BadInput where the file is gone."""
    if not is_there(path):
        raise BadInput(path, "is missing: build the shards of this split")
    for file, number, line in lines(path):
        if wanted in line:
            yield parsed_line(line, file, number)


def tokenizer_of(folder: Path, root: Path) -> Tokenizer:
    """The tokenizer of a folder of shards. root: the data root.

    Raises MissingVocabulary where it is not published.
    """
    first = next(folder.glob("*/*/shard_*.meta.json"), None)
    if first is None or b'"tokenizer":' not in first.read_bytes():
        return of_pinned(GPT2, find(GPT2, root))
    return open_tokenizer(root / PLACE / read_meta(first).tokenizer)


def _tokenizer(_: Path, folder: Path, root: Path) -> Tokenizer:
    return tokenizer_of(folder, root)


def token_origins(
    tokenized: Path, partition: str, shard: int, row: int, token: int
) -> Iterator[contract.Trace]:
    """Trace a token of a sequence: its example, its characters, its record, its raw row.

    Yields the trace of the token, then the record, then the raw row; where it leads no further the
    last step says why. Raises as `trace.trace`.
    """
    place = _token_at(tokenized, partition, shard, row, token)
    yield from walk(EDGES, Row(TOKENS, tokenized, (partition, *place)))


def example_origins(
    tokenized: Path, partition: str, example_id: str, token: int = 0
) -> Iterator[contract.Trace]:
    """Trace a token of an example, the first by default; as `token_origins`."""
    place = _token_of(tokenized, partition, example_id, token)
    yield from walk(EDGES, Row(TOKENS, tokenized, (partition, *place)))


def sequence_origins(tokenized: Path, shard: Shard, row: int) -> Iterator[contract.Trace]:
    """Trace each example of a sequence, by its first token there; as `token_origins`."""
    for values, before, _ in _of_row(tokenized, shard.partition, shard.path, row):
        yield from walk(EDGES, Row(TOKENS, tokenized, (shard.partition, values, before)))


def record_origins(folder: Path, partition: str, record: int) -> Iterator[contract.Trace]:
    """Trace a normalised record, by its number. Raises NotTraced where there is none."""
    return walk(EDGES, Row(NORMALIZED, folder, (partition, record)))


def alignment_origins(folder: Path, partition: str, record: int) -> Iterator[contract.Trace]:
    """Trace an example of an alignment to its record and raw row. Raises BadInput for none."""
    return walk(EDGES, Row(ALIGNMENT, folder, (partition, record)))


def _token(tokenized: Path, place: tuple[str, Mapping[str, Any], int]) -> Steps:
    """The edge of a token: its example by the index, its characters in the text, the record."""
    partition, values, token = place
    yield (found := _trace(tokenized, values, token))
    shards = source(tokenized, partition)
    normalized = shards.made_from(NORMALIZED, partition=partition)
    text = text_of(record_at(normalized.folder, partition, found.record)[0])
    if hashlib.sha256(text.encode()).hexdigest() != found.text_sha256:
        raise NotTraced(f"record {found.record} has another text: build {shards.title} again")
    facts: dict[str, object] = {"text_characters": len(text)}
    # The shards were made by one tokenizer, so it is looked for once a version of them.
    tokenizer = kept(_tokenizer, shards.record_path, tokenized, shards.root)
    if found.token >= found.num_tokens:
        facts |= {"characters": "none: it is the end of the example"}
    elif tokenizer.no_offsets:
        facts |= {"characters": f"not known: {tokenizer.no_offsets}"}
    else:
        ids = tokens_of(tokenized, values)[:-1].astype(np.int32)
        projection = Projection([text], ids, [len(ids)], tokenizer.token_lengths)
        start, end = projection.characters(0, found.token, found.token + 1)
        facts |= {"characters": f"{start}-{end}", "characters_text": repr(text[start:end])}
    yield Origin(facts)
    yield Row(NORMALIZED, normalized.folder, (partition, found.record))


def _record(folder: Path, place: tuple[str, int]) -> Steps:
    """The edge of a normalised record: its line, and the raw row by the origins."""
    partition, record = place
    normalized, (path, line) = source(folder, partition), _line_at(folder, partition, record)[:2]
    corpus, split = corpus_and_split(partition)
    name = path.relative_to(folder).as_posix()
    sha256 = next((each.sha256 for each in normalized.record.outputs if each.path == name), None)
    yield Origin({"normalized_file": name, "line": line, "normalized_sha256": sha256})
    places = mapped(normalized.folder / names.origins(partition))
    jsonl = normalized.folder / names.normalized(corpus.name, split)
    at = Numbers(jsonl).place(record)
    if at is None or at >= len(places):
        raise NotTraced(f"{names.origins(partition)} has no record {record}: build it again")
    number, row = places[at].tolist()
    items = normalized.raw_inputs()
    if not 0 <= number < len(items):
        raise NotTraced(f"{normalized.title} was made from {len(items)} raw files, not {number}")
    facts = {**normalized.raw_facts(items[number]), "raw_row": row}
    if "raw_note" not in facts:
        read_by = published.corpus_of_record(normalized.record)
        facts |= row_bytes(normalized.root / str(items[number].path), read_by, row)
    yield Origin(facts)


def _aligned(folder: Path, place: tuple[str, int]) -> Steps:
    corpus, split = place[0].split("__")
    found, name = Place(corpus, split, place[1]), names.alignment(corpus, split)
    line, _ = aligned_row(folder, found)
    facts = {"example_id": found.example_id, "alignment_file": name, "alignment_line": line}
    yield Origin(facts)
    yield Row(NORMALIZED, source(folder, place[0]).made_from(NORMALIZED).folder, place)


def _spans(folder: Path, place: tuple[str, int]) -> Steps:
    """The edge of a record's annotations: the line of each, and the record."""
    corpus, split = place[0].split("__")
    path, wanted = folder / names.spans(corpus, split), names.example_id(corpus, split, place[1])
    found = [
        (number, row["ann_text"])
        for number, row in enumerate(rows_of(path), 1)
        if row["example_id"] == wanted
    ]
    if not found:
        raise BadInput(path, f"has no row {wanted}: it has no annotation")
    for number, text in found:
        file, line = located(path, number)
        name = file.relative_to(folder).as_posix()
        yield Origin({"example_id": wanted, "spans_file": name, "line": line, "annotation": text})
    yield Row(NORMALIZED, source(folder, place[0]).made_from(NORMALIZED).folder, place)


def _conversation(folder: Path, number: int) -> Steps:
    from gristmill.exports.messages import row_at  # loads Arrow

    made = source(folder)
    path, inside, row = row_at(reports.shards(folder), number)
    facts = {"file": path.relative_to(folder).as_posix(), "row": inside + 1}
    yield Origin({**facts, "synth_id": row["synth_id"], "split": row["split"]})
    drop = str(made.record.partition).rpartition("__")[0]
    item = made.raw_input(f"drops/chat/{drop}/{row['file']}")
    yield Origin({**made.raw_facts(item), "raw_row": row["row"]})


def _exported(folder: Path, place: tuple[Place, int]) -> Steps:
    """The edge of a token of an exported example: the token of the dataset."""
    made, (example, token) = source(folder), place
    dataset = made.made_from(TOKENS).folder
    found = _token_of(dataset, example.partition, example.example_id, token)
    yield Origin({"exported": made.title})
    yield Row(TOKENS, dataset, (example.partition, *found))


def _text(folder: Path, place: tuple[int, int]) -> Steps:
    """The edge of a text of nanochat, by the number of its file and its own there: its record."""
    import pyarrow.parquet as pq

    shard, number = place
    files = sorted((folder / "nanochat").glob("shard_*.parquet"))
    path = folder / "nanochat" / f"shard_{shard:05d}.parquet"
    counts = [pq.read_metadata(each).num_rows for each in files]
    if path not in files or not number < counts[files.index(path)]:
        raise BadInput(path, f"has no text {number:,}: they count from 0, in each file")
    yield Origin({"file": path.relative_to(folder).as_posix(), "text": number})
    held = path == files[-1]
    left = number if held else number + sum(counts[: files.index(path)])
    made = source(folder)
    parts = [str(item.partition) for item in made.inputs if item.asset == NORMALIZED]
    names_of = {key.split("__")[1] for key in parts}
    split = ("validation" if "validation" in names_of else "test") if held else "train"
    for partition in (each for each in parts if each.split("__")[1] == split):
        normalized = made.made_from(NORMALIZED, partition=partition)
        jsonl = normalized.folder / names.normalized(*partition.split("__"))
        for at, row in records.records(jsonl):
            left -= bool(text_of(row))
            if left < 0:
                yield Row(NORMALIZED, normalized.folder, (partition, Numbers(jsonl).of(at)))
                return


TALKS: Final = "chat/conversations"
NANOCHAT: Final = f"{EXPORTS}/nanochat"
EDGES: Final[Mapping[str, Edge]] = {
    NORMALIZED: _record,
    TOKENS: _token,
    ALIGNMENT: _aligned,
    published.SPANS: _spans,
    EXPORTS: _exported,
    NANOCHAT: _text,
    TALKS: _conversation,
}
"""From a row to the rows that it was made from, by asset. Shards are as datasets of tokens."""


def aligned_row(folder: Path, place: Place) -> tuple[int, align.AlignRow]:
    """The row of an example in an alignment, and its line, from 1. Raises BadInput for none."""
    path = folder / names.alignment(place.corpus, place.split)
    for line, row in enumerate(align.rows(path), 1):
        if row.example_id == place.example_id:
            return line, row
    raise BadInput(path, f"has no row {place.example_id}: it is not in the split, or has no text")


def record_at(folder: Path, partition: str, record: int) -> tuple[dict[str, Any], int]:
    """A record of a normalised file by its number, and its line, from 1."""
    path, line, begin = _line_at(folder, partition, record)
    with path.open("rb") as file:
        file.seek(begin)
        return records.parse(file.readline(), path, line), line


def _line_at(folder: Path, partition: str, record: int) -> tuple[Path, int, int]:
    """The file of a record by its number, its line there, from 1, and where that begins."""
    corpus, split = corpus_and_split(partition)
    path = folder / names.normalized(corpus.name, split)
    if not is_there(path):
        raise BadInput(path, "is not there: build reasoning/normalized")
    at, found = Numbers(path).place(record), files(path)
    left = -1 if at is None else at
    for file, count in zip(found, rows_of_files(folder, partition, found), strict=True):
        if 0 <= left < count:
            begins, lines = kept(_lines_of, file)
            return file, lines[left], begins[left]
        left -= count
    raise NotTraced(f"{path} has no record {record}{' any more' if at is None else ''}")


def rows_of_files(folder: Path, partition: str, found: Sequence[Path]) -> Iterator[int]:
    """Yield how many records each file of a split has: as recorded, which spares reading parts."""
    path = record_path(folder, partition, shared=True)
    outputs = kept(read_record, path).outputs if len(found) > 1 and path.is_file() else ()
    rows = {folder / each.path: each.rows for each in outputs}
    for file in found:
        known = rows.get(file)
        yield len(kept(_lines_of, file)[0]) if known is None else known


def _lines_of(path: Path) -> tuple[array[int], array[int]]:
    """Where the lines of a file that are not blank begin, and their numbers, from 1."""
    begins, numbers, begin = array("q"), array("q"), 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                begins.append(begin)
                numbers.append(number)
            begin += len(line)
    return begins, numbers


def chosen(request: Request, published: Collection[str]) -> Place:
    """The example that a command names.

    request: its sample is an id, or a number beside the options `corpus` and `split`.
    published: partitions of the folder.

    Without the options the first published split is taken. Raises Misuse for a sample that is
    neither, and for a split that is not published.
    """
    if (place := parsed(request.sample)) is None:
        if not request.sample.isdigit():
            raise Misuse(f"{request.sample!r} is neither a number nor an id as gsm8k_test_000012")
        place = Place(*split_of(request, published), request.number)
    if place.partition not in published:
        raise Misuse(f"{place.partition} is not in {request.path}: {_named(published)}")
    return place


def split_of(request: Request, published: Collection[str]) -> tuple[str, str]:
    """Corpus and split by the options of a command; the first published ones without them."""
    corpus, split = request.options.get("corpus"), request.options.get("split")
    for key in published:
        name, other = key.rsplit("__", 1)
        if corpus in (None, name) and split in (None, other):
            return name, other
    wanted = " ".join(word for word in (corpus, split) if word)
    raise Misuse(f"no split {wanted} in {request.path}: {_named(published)}".replace("  ", " "))


def _named(published: Collection[str]) -> str:
    return f"it has {', '.join(published)}" if published else "it has none"


def traced(asset: str, request: Request) -> Iterable[contract.Trace]:
    """Where a row of an artifact came from. asset: its key.

    request: path is its folder. The sample is the id of an example, or a number beside the options
        `corpus` and `split`. Of shards the number is a row of the shard that `shard` names;
        `token` is the number of a token of an example, or a column of the row. Of exports it is the
        number of a text in the file that `shard` names.
    """
    folder, token, place = request.path, request.options.get("token") or 0, parsed(request.sample)
    if asset == TALKS:
        return walk(EDGES, Row(asset, folder, request.number))
    if asset == EXPORTS:
        if place is None:
            return walk(EDGES, Row(NANOCHAT, folder, (_shard(request, "file"), request.number)))
        return walk(EDGES, Row(asset, folder, (place, token)))
    keys = published.splits_in(folder, FILES[asset])
    if asset not in (SHARDS, TOKENS):
        place = chosen(request, keys)
        return walk(EDGES, Row(asset, folder, (place.partition, place.record)))
    if place is None:
        number, partition = _shard(request, "shard"), "__".join(split_of(request, keys))
        return token_origins(folder, partition, number, request.number, token)
    place = chosen(request, keys)
    return example_origins(folder, place.partition, place.example_id, token)


def _shard(request: Request, what: str) -> int:
    shard = str(request.options.get("shard") or "0")
    if not (shard.isascii() and shard.isdigit() and len(shard) < 10):
        raise Misuse(f"--shard {shard}: must be the number of a {what}")
    return int(shard)

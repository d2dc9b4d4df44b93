"""Shards for people: tokens and pictures, tables of the sample browser, facts, columns."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from gristmill import markdown
from gristmill.browse.columns import Columns, of_parquet
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token
from gristmill.contract import BadInput, GristmillError
from gristmill.families import Column
from gristmill.provenance import RECORD, read_record
from gristmill.reading.reader import Ranges, counted, file_facts
from gristmill.svg import small_card, small_text
from gristmill.synth.builders import harmony_shard
from gristmill.synth.builders.harmony_shard import shard_name, shards
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import harmony_tokens, megatron, trace
from gristmill.synth.format.megatron import Indexed
from gristmill.synth.format.trace import schema
from gristmill.synth.laws import SPLITS
from gristmill.synth.read import distill
from gristmill.synth.render import documents, harmony
from gristmill.synth.render.documents import BadRow, Renderer
from gristmill.vocabularies import encode
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import FACTS, GPT2, O200K, find
from gristmill.vocabularies.tokenizer import open_tokenizer

if TYPE_CHECKING:
    from gristmill.browse.opening import Files

_MOST: Final = 9
"""Messages of a picture."""
_FILLS: Final = ("#e3e7ea", "#ffd766", "#a9dfb0")
"""Of the spans: prompt, reasoning, final."""
_SUBSCRIPTS: Final = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Words(NamedTuple):
    """What ids are written as. name_of: of a control token, None for an ordinary one."""

    bytes_of: Callable[[int], bytes]
    name_of: Callable[[int], str | None]
    eod: int
    size: int

    def text(self, tokens: Sequence[int]) -> str:
        """The text of the ordinary tokens."""
        bodies = [token for token in tokens if token >= 0 and self.name_of(token) is None]
        return b"".join(map(self.bytes_of, bodies)).decode("utf-8", "replace")


@lru_cache(maxsize=4)
def words_of(vocabulary: Path) -> Words:
    """What ids are written as. vocabulary: the file of o200k_harmony, or of another tokenizer."""
    if vocabulary.with_name(FACTS).is_file() or vocabulary.parent.name == GPT2.name:
        own = open_tokenizer(vocabulary.parent)
        names = {token: text for text, token in own.special.items()}
        return Words(own.token_bytes.__getitem__, names.get, own.eod, own.size)
    one = encode.encoding(vocabulary).decode_single_token_bytes
    return Words(one, _harmony_name, harmony_tokens.ENDOFTEXT, harmony_tokens.PADDED_VOCABULARY)


def _harmony_name(token: int) -> str | None:
    return harmony_tokens.name(token) if token >= harmony_tokens.BODY_LIMIT else None


@dataclass(frozen=True)
class Message:
    """One message: the role or the channel, and its tokens as a person reads them."""

    label: str
    tokens: list[Token]


def vocabulary_of(path: Path) -> Path:
    """The vocabulary of an artifact, in the data root above it. Raises what `find` raises."""
    above = path.absolute().parents
    root = next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])
    record = path / RECORD
    own = read_record(record).tokenizer if record.is_file() else None
    if own is not None and own.name != O200K.name:
        return root / own.path
    return find(O200K, root)


def harmony_row(
    shard: Path, row: int, values: Mapping[str, Any], vocabulary: Path
) -> list[Message]:
    """The messages of a Harmony row, from 0. Raises BadInput if it cannot be rendered."""
    try:
        rendered = Renderer(vocabulary).read(values["messages_json"])
        harmony.strict_json(values["messages_json"])
        made = documents.assemble([rendered], vocabulary, TIKTOKEN)
    except (BadRow, ValueError, RecursionError) as error:
        raise BadInput(shard, f"synth_id {values['synth_id']!r}: {error}", row + 1) from error
    bounds = list(pairwise([0, *np.cumsum(made.runs).tolist()]))
    span = made.span.tolist()
    mask = [int(value != 0) for value in span]
    return messages(made.tokens.tolist(), mask, span, bounds, vocabulary)


def document(root: Path, number: str, split: str, place: int, vocabulary: Path) -> list[Message]:
    """Return the messages of one document of a dataset.

    A token has the span and mask of its token as a label. The datasets hold them one place
    earlier; the first token of a document is not a label.
    Raises BadInput if there is no such document, or if it is damaged.
    """
    origin = trace.trace(root, number, split, place)
    prefix = root / split / f"shard_{number}_tokens"
    size = words_of(vocabulary).size
    tokens, mask, span = _values(prefix, place, origin.offsets[-1] + 1, size)
    bounds = [*origin.message_bounds(), (len(tokens) - 1, len(tokens))]
    return messages(tokens, mask, span, bounds, vocabulary)


def distilled(folder: Path, split: str, number: int, vocabulary: Path) -> list[Message]:
    """The messages of a row of labels and spans. Raises BadInput if it is missing or damaged."""
    row = distill.row(folder, split, number)
    tokens, counts = row["input_ids"], list(row["spans"].values())
    stops = list(accumulate(counts))
    words = words_of(vocabulary)
    if not tokens or min(tokens) < 0 or max(tokens) >= words.size or stops[-1] != len(tokens):
        rule = f"row {number} is damaged, see `gristmill verify`: build the dataset again"
        raise BadInput(folder / distill.SPLITS[split], rule)
    mask = [int(label >= 0) for label in row["labels"]]
    span = [code for code, count in enumerate(counts) for _ in range(count)]
    prompt = [at for at in range(1, stops[0] - 2) if tokens[at] == harmony_tokens.START]
    bounds = pairwise([0, *prompt, *(stop for stop in stops if stop), len(tokens)])
    # As labels, which are one place before their tokens.
    mask, span = [*mask[1:], 0], [*span[1:], 0]
    shown = [(begin, end) for begin, end in bounds if begin < end]
    return messages(tokens, mask, span, shown, vocabulary)


def _values(prefix: Path, document: int, length: int, size: int) -> list[list[int]]:
    """Return tokens, mask and span of one document. Raises BadInput for a wrong place or value."""
    found: list[list[int]] = []
    place: list[int] | None = None
    limits = {"tokens": size, "lossmask": 2, "span": len(harmony_tokens.SPANS)}
    for name, below in limits.items():
        data = megatron.opened(megatron.sibling(prefix, name))
        own = data.bounds(document, document + 1).tolist() if document < len(data) else [0, 0]
        place = own if place is None else place
        values = data.values[own[0] : own[1]] if own[0] >= 0 else data.values[:0]
        is_there = own == place and len(values) == length == own[1] - own[0]
        if not is_there or values.min() < 0 or values.max() >= below:
            rule = f"document {document} is damaged, see `gristmill verify`: build the shard again"
            raise BadInput(data.path, rule)
        found.append(values.tolist())
    return found


def messages(
    tokens: Sequence[int],
    mask: Sequence[int],
    span: Sequence[int],
    bounds: Sequence[tuple[int, int]],
    vocabulary: Path,
) -> list[Message]:
    """Return the messages of one document; the last token of each ends its line.

    tokens: ids [T].
    mask, span: of the labels [T], as the datasets hold them.
    bounds: begin and end of each message in `tokens`.
    """
    mask, span = [0, *mask[:-1]], [0, *span[:-1]]
    encoding = words_of(vocabulary)
    kinds = list(zip(mask, span, strict=True))
    found = []
    for begin, end in bounds:
        shown = [
            Token(
                _marked(tokens[first:stop], encoding) + "\n" * (stop == end),
                counts=bool(mask[first]),
                span=harmony_tokens.SPANS[span[first]],
                plain=_plain(tokens[first:stop], encoding) + "\n" * (stop == end),
            )
            for first, stop in _groups(tokens, kinds, (begin, end), encoding)
        ]
        found.append(Message(_label(tokens[begin:end], span[begin], encoding), shown))
    return found


def picture(title: str, shown: Sequence[Message]) -> Picture:
    """The messages of a document in the colours of their spans, as many as Dagster shows inline."""
    head = small_text(10, 20, title, " font-weight='700'")
    for count in range(min(_MOST, len(shown)), -1, -1):
        lines = [
            small_text(10, 39 + 17 * at, f"{message.label}: {text}", f" fill='{fill}'")
            for at, message in enumerate(shown[:count])
            for text, fill in [_body(message)]
        ]
        drawing = small_card(31 + 17 * count, [head, *lines])
        if len(markdown.image("tokens", drawing)) <= markdown.INLINE:
            break
    return Picture("tokens", drawing)


def _body(message: Message) -> tuple[str, str]:
    """The text of a message without its header, and the colour of its span."""
    text = "".join(token.text if token.plain is None else token.plain for token in message.tokens)
    *_, body = text.strip().split("<|message|>")
    return " ".join(body.split()), _FILLS[harmony_tokens.SPANS.index(message.tokens[0].span)]


def _groups(
    tokens: Sequence[int], kinds: Sequence[object], bounds: tuple[int, int], encoding: Words
) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each shown token: several tokens where they share a character."""
    place, end = bounds
    while place < end:
        stop = _character_end(tokens[place:end], encoding) + place
        if any(kind != kinds[place] for kind in kinds[place:stop]):
            stop = place + 1
        yield place, stop
        place = stop


def _character_end(tokens: Sequence[int], encoding: Words) -> int:
    """How many of the first tokens are whole characters together; 1 where none are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for count, token in enumerate(tokens, 1):
        if encoding.name_of(token) is not None:
            return 1
        try:
            decoder.decode(encoding.bytes_of(token))
        except UnicodeDecodeError:
            return 1
        if not decoder.getstate()[0]:
            return count
    return 1


def _marked(tokens: Sequence[int], encoding: Words) -> str:
    """The text of tokens; that of several in brackets, with their number as a subscript."""
    text, count = written(tokens, encoding), len(tokens)
    return text if count == 1 else f"‹{text}›{str(count).translate(_SUBSCRIPTS)}"


def written(tokens: Sequence[int], encoding: Words) -> str:
    """Return the text of tokens on one line."""
    if (name := encoding.name_of(tokens[0])) is not None:
        return name
    data = b"".join(map(encoding.bytes_of, tokens))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"‹{data.hex()}›"
    text = text.replace(" ", "·").replace("\n", "⏎").replace("\r", "␍").replace("\t", "⇥")
    return "".join(char if char.isprintable() else f"‹U+{ord(char):04X}›" for char in text)


def _plain(tokens: Sequence[int], encoding: Words) -> str:
    """The text of tokens that are whole characters together, else what stands for their bytes."""
    if len(tokens) == 1 and encoding.name_of(tokens[0]) is not None:
        return written(tokens, encoding)
    try:
        return b"".join(map(encoding.bytes_of, tokens)).decode()
    except UnicodeDecodeError:
        return written(tokens, encoding)


def _label(tokens: Sequence[int], span: int, words: Words) -> str:
    """Return the role of a message, or the channel of an assistant message, from its header."""
    if tokens[0] == words.eod:
        return "end"
    is_harmony = words.eod == harmony_tokens.ENDOFTEXT and tokens[0] == harmony_tokens.START
    if not is_harmony or harmony_tokens.MESSAGE not in tokens:
        return harmony_tokens.SPANS[span]
    roles = {word: role for role, word in harmony_tokens.ROLE_WORDS.items()}
    channels = {word: channel for channel, word in harmony_tokens.CHANNEL_WORDS.items()}
    if harmony_tokens.CHANNEL in tokens:
        place = list(tokens).index(harmony_tokens.CHANNEL)
        return channels.get(tokens[place + 1], "assistant")
    return roles.get(tokens[1], "message")


_SEARCHABLE: Final = ("messages_json", "synth_id", "language", "exercise", "text", "metadata_json")
_SPLITS: Final = ("train", "valid")
_HEADER, _INDEX_BYTES = 34, 20
_STEP: Final = 256
"""Documents that are decoded together."""
_TRACED: Final = ("input", "row", "synth_id", "language", "exercise")


def tables(asset: str, folder: Path, files: Files) -> Iterator[Stored]:
    """Yield a table for each shard of Harmony, or for each split of each shard of a dataset."""
    if asset == "synth/harmony":
        for number in shards(folder):
            yield _harmony_table(folder, files, number)
    elif asset.endswith("/kd_shards"):
        found = sorted(folder.glob("*/shard_*_tokens.idx"))
        for path in found:
            if path.parent.name in _SPLITS:
                number = path.name[6:-11]
                shared = "" if asset.startswith("chat/") else number
                yield _document_table(folder, files, number, path.parent.name, shared)
    elif asset.endswith("/distill"):
        for split in _SPLITS:
            yield _distilled_table(folder, files, split)


def _drawn(
    title: Callable[[Record], str], messages: Callable[[Record], list[Message]]
) -> dict[str, Any]:
    """How a row is drawn, and its tokens."""

    def pictures(row: Record) -> list[Picture]:
        return [picture(title(row), messages(row))]

    def shown(row: Record) -> list[Token]:
        return [token for message in messages(row) for token in message.tokens]

    return {"pictures": pictures, "tokens": shown}


def _harmony_table(folder: Path, files: Files, number: str) -> Stored:
    def messages(row: Record) -> list[Message]:
        vocabulary = vocabulary_of(folder)
        return harmony_row(folder / shard_name(number), row.number, row.values, vocabulary)

    return Stored(
        number,
        lambda: of_parquet(files.checked(shard_name(number))),
        _SEARCHABLE,
        partition=number,
        sample=lambda row: (str(row.number), {"shard": number}),
        chosen={"shard": number},
        ids=("synth_id",),
        **_drawn(lambda row: f"{number} row {row.number} · {row.values['synth_id']}", messages),
    )


def _document_table(folder: Path, files: Files, number: str, split: str, partition: str) -> Stored:
    def messages(row: Record) -> list[Message]:
        return document(folder, number, split, row.number, vocabulary_of(folder))

    return Stored(
        f"{split}/{number}",
        lambda: _Documents(folder, files, number, split).columns(),
        _SEARCHABLE,
        slow=("text",),
        partition=partition,
        sample=lambda row: (str(row.number), {"shard": number, "split": split}),
        chosen={"shard": number, "split": split},
        ids=("synth_id",) if (folder / trace.path(number)).is_file() else (),
        **_drawn(lambda row: f"{split} document {row.number}", messages),
    )


def _distilled_table(folder: Path, files: Files, split: str) -> Stored:
    def messages(row: Record) -> list[Message]:
        return distilled(folder, split, row.number, vocabulary_of(folder))

    def opened() -> Columns:
        name = distill.SPLITS[split]
        paths = [files.checked(f"{name}/{path.name}") for path in distill.files_of(folder, split)]
        held = pa.Table.from_batches(distill.batches(folder, split), distill.SCHEMA)
        held = held.select([name for name in distill.SCHEMA.names if name != "attention_mask"])
        types = dict.fromkeys(held.column_names, "text")

        def get(names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
            part = held.slice(first, stop - first)
            return {name: part[name].to_pylist() for name in names}

        return Columns(paths[0], types, len(held), get, step=_STEP)  # type: ignore[arg-type]

    return Stored(
        distill.SPLITS[split],
        opened,
        ("id", "source"),
        sample=lambda row: (str(row.number), {"split": split}),
        chosen={"split": split},
        ids=("id",),
        **_drawn(lambda row: f"{split} row {row.number}", messages),
    )


class _Documents:
    """The documents of one split of a shard: their sizes are proved, and each as it is read."""

    def __init__(self, folder: Path, files: Files, number: str, split: str) -> None:
        self._split = split
        stem = f"{split}/shard_{number}_tokens"
        index, values = files.checked(f"{stem}.idx"), files.checked(f"{stem}.bin")
        count, rest = divmod(index.stat().st_size - 42, _INDEX_BYTES)
        size, odd = divmod(values.stat().st_size, 4)
        with index.open("rb") as file:
            magic = file.read(9)
        if rest or odd or count < 0 or magic != b"MMIDIDX\x00\x00":
            raise BadInput(index, "is no index of Megatron for these tokens: build the shard again")
        self._data = Indexed(values, index, np.dtype("<i4"), count, size)
        self._trace = files.folder / trace.path(number)
        self._decode = _decoder(folder)
        self._places = lru_cache(8)(self._traced)

    def columns(self) -> Columns:
        """Its documents by number."""
        types: dict[str, Any] = {"tokens": "integer"}
        if self._trace.is_file():
            types |= dict.fromkeys(_TRACED, "text") | {"row": "integer"}
        if self._decode is not None:
            types["text"] = "text"
        return Columns(self._data.index, types, self._data.count, self._get, step=_STEP)

    def _get(self, names: Sequence[str], first: int, stop: int) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        if "tokens" in names:
            found["tokens"] = np.array(self._data.lengths[first:stop])
        if traced := [name for name in names if name in _TRACED]:
            found |= {name: self._places(first, stop)[name] for name in traced}
        if "text" in names:
            found["text"] = self._texts(first, stop)
        return found

    def _texts(self, first: int, stop: int) -> list[str]:
        bounds = self._data.bounds(first, stop)
        if (np.diff(bounds) <= 0).any() or bounds[0] < 0 or bounds[-1] > self._data.size:
            rule = (
                f"documents {first:,} to {stop:,} do not follow each other: build the shard again"
            )
            raise BadInput(self._data.index, rule)
        assert self._decode is not None
        text_of = self._decode().text
        texts = []
        for begin, end in pairwise(bounds.tolist()):
            texts.append(text_of(self._data.values[begin:end].tolist()))
        return texts

    def _traced(self, first: int, stop: int) -> Mapping[str, list[Any]]:
        """Columns of the trace of some documents, which are in their order in each split."""
        import polars as pl

        try:
            own = pl.scan_parquet(self._trace).filter(pl.col("split") == self._split)
            inside = pl.col("document").is_between(first, stop - 1)
            found = own.filter(inside).select(*_TRACED).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise BadInput(self._trace, f"is damaged ({error}): build the shard again") from error
        if len(found) != stop - first:
            rule = f"does not have the documents {first:,} to {stop - 1:,} of {self._split}"
            raise BadInput(self._trace, f"{rule}: build the shard again")
        return {name: found[name].to_list() for name in _TRACED}


def _decoder(folder: Path) -> Callable[[], Words] | None:
    try:
        path = vocabulary_of(folder)
    except GristmillError:
        return None
    return lambda: words_of(path)


_VALUES = 1 << 22


def facts(asset: str, folder: Path) -> Iterator[str]:
    """Yield the shards with their documents, types and ranges, a line each.

    asset: key of an asset of this family, as `synth/kd_shards`.
    folder: of it.

    Raises BadInput where a file cannot be read.
    """
    if asset.startswith("synth/harmony"):
        for shard in harmony_shard.shards(folder).values():
            with harmony_shard.open_shard(shard) as file:
                columns = ", ".join(f"{field.name} {field.type}" for field in file.schema)
                yield f"{shard.name}: {counted(file.rows, 'row')}; {columns}"
    elif asset.endswith("/distill"):
        for split, name in distill.SPLITS.items():
            rows, lengths = 0, Ranges()
            for batch in distill.batches(folder, split):
                rows += len(batch)
                lengths.add(np.asarray(batch.column("input_ids").value_lengths()), "lengths")
            yield "; ".join([f"{name}: {counted(rows, 'row')}", *lengths.lines()])
    else:
        for split in SPLITS:
            for index in sorted((folder / split).glob("shard_*_tokens.idx")):
                yield from _dataset_facts(index.with_suffix(""), split)
    yield from file_facts(folder, ("manifest.json", "metadata.json"))


def _dataset_facts(tokens: Path, split: str) -> Iterator[str]:
    for name in megatron.DTYPES:
        prefix = megatron.sibling(tokens, name)
        found, ranges = megatron.read(prefix), Ranges()
        lengths = Ranges()
        for batch in found.length_batches():
            lengths.add(batch, "lengths")
        for begin in range(0, found.size, _VALUES):
            ranges.add(found.load(begin, min(begin + _VALUES, found.size)), "values")
        parts = [counted(len(found), "document"), *lengths.lines(), *ranges.lines()]
        yield f"{split}/{prefix.name}: {'; '.join(parts)}"


_MESSAGES = "JSON with the messages: system, developer, user, analysis, final"
_METADATA = "JSON with the metadata columns that the raw file has; null is kept"
_DATASETS = (
    Column("tokens", "int32", "token ids of o200k_harmony, a document after the other"),
    Column("lossmask", "uint8", "0 or 1 for each token: whether it is trained"),
    Column("span", "uint8", "0 prompt, 1 reasoning, 2 final"),
)
_DISTILL = (
    Column("id", "string", "dataset and id of the row"),
    Column("source", "struct", "dataset, language, exercise, and these with the id as JSON"),
    Column("input_ids", "list<int32>", "token ids, without an end of document"),
    Column("labels", "list<int32>", "the same, -100 up to the answer; not shifted"),
    Column("attention_mask", "list<int8>", "1 for each token"),
    Column("spans", "struct", "tokens before the answer, of its reasoning, of its final part"),
)
_TRACE = {
    "split": "train or valid",
    "document": "number of the document in that split of this shard, from 0",
    "input": "file name of the Harmony shard",
    "row": "row in it, from 1",
    "synth_id": "of the row",
    "language": "of the row; may be null",
    "exercise": "of the row; may be null",
    "offsets": "token positions where the messages begin, then that of the end",
}


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables.

    asset: its key, as `synth/harmony`. The metadata columns of Harmony are the default ones.
    """
    if asset == "synth/harmony":
        return [
            Column("messages_json", "string", _MESSAGES),
            Column("metadata_json", "string", _METADATA),
            *(
                Column(name, "string", "metadata of the raw row, as text, or null")
                for name in HarmonyConfig().metadata_fields
            ),
        ]
    if asset.endswith("/kd_shards"):
        trace = (Column(f"trace.{f.name}", str(f.type), _TRACE[f.name]) for f in schema())
        return [*_DATASETS, *trace]
    if asset.endswith("/distill"):
        return _DISTILL
    return ()

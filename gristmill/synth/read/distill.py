"""Rows of token ids, labels and spans: columns and files, how documents become rows; splits.

Source: `docs/formats/synth.md#distill-datasets`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gristmill.contract import BadInput
from gristmill.exports.table import Array, Batches, Split, Tokens, list_of, required
from gristmill.synth.format import harmony_tokens, megatron, trace
from gristmill.synth.render.documents import Documents

IGNORED: Final = -100
DICT: Final = "dataset_dict.json"
STATE: Final = "state.json"
SPLITS: Final = {"train": "train", "valid": "validation"}
"""The folder of each split."""
_TEXTS: Final = ("dataset", "language", "exercise", "meta_json")
_COUNTS: Final = ("assistant_token_start", "analysis_token_count", "final_token_count")
SCHEMA: Final = pa.schema(
    {
        "id": pa.string(),
        "source": pa.struct([(name, pa.string()) for name in _TEXTS]),
        "input_ids": pa.list_(pa.int32()),
        "labels": pa.list_(pa.int32()),
        "attention_mask": pa.list_(pa.int8()),
        "spans": pa.struct([(name, pa.int32()) for name in _COUNTS]),
    }
)

Places = npt.NDArray[np.int64]


class Answers(NamedTuple):
    """Where the last answer of each document is among all tokens, int64 [D].

    first: of the document. start: behind the prompt. end: behind the answer.
    reasoning: tokens of its thought. final: those of its answer; 0 without one.
    """

    first: Places
    start: Places
    end: Places
    reasoning: Places
    final: Places


def answers(documents: Documents, is_harmony: bool) -> Answers:
    """Where the last thought of each document and the answer after it are.

    is_harmony: whether messages begin with a header, whose first two tokens are of the prompt.
    """
    ends = np.cumsum(documents.lengths, dtype=np.int64)
    first = ends - documents.lengths
    code, begins = _begins(documents)
    named = np.flatnonzero(code)
    at = np.searchsorted(named, ends)
    has_answer = np.diff(at, prepend=0) > 0
    end, start = first.copy(), first.copy()
    end[has_answer] = named[at[has_answer] - 1] + 1
    start[has_answer] = begins[np.searchsorted(begins, end[has_answer]) - 1]
    thought = np.append(0, np.cumsum(code == harmony_tokens.REASONING))
    reasoning = thought[end] - thought[start]
    final = end - start - reasoning
    if is_harmony:
        start[has_answer] += 2
        is_final = reasoning == 0
        final[is_final & has_answer] -= 2
        reasoning[~is_final] -= 2
    return Answers(first, start, end, reasoning, final)


def _begins(documents: Documents) -> tuple[npt.NDArray[np.uint8], Places]:
    """The span code of each token, and where each thought, or answer without one, begins."""
    code = np.zeros(len(documents.span) + 1, np.uint8)
    code[1:] = documents.span
    code = code[:-1]  # of tokens, not of labels
    code[np.cumsum(documents.lengths, dtype=np.int64) - documents.lengths] = 0
    before = np.zeros_like(code)
    before[1:] = code[:-1]
    return code, np.flatnonzero((code > 0) & ((before == 0) | (before > code)))


def trained(documents: Documents, is_harmony: bool) -> npt.NDArray[np.bool_]:
    """Which tokens are trained on in any answer, bool [tokens]. is_harmony: as of `answers`."""
    code, begins = _begins(documents)
    found = code > 0
    if is_harmony:
        found[begins] = found[begins + 1] = False
    return found


def rows(
    tokens: npt.NDArray[np.int32],
    found: Answers,
    names: pa.RecordBatch,
    dataset: str,
    returns: bool = True,
    is_trained: npt.NDArray[np.bool_] | None = None,
) -> pa.RecordBatch:
    """The rows of documents.

    tokens: of the documents, back to back. found: their answers.
    names: synth_id, language and exercise of each. dataset: what the rows are from.
    returns: whether an answer that ends with `<|end|>` gets `<|return|>`, as in Harmony (default).
    is_trained: which tokens have labels, as `trained` returns it; default those of the answers.
    """
    edges = np.zeros((2, len(tokens) + 1), np.int8)
    for line, begin in enumerate((found.first, found.start)):
        edges[line, begin] += 1
        edges[line, found.end] -= 1
    # A document may begin where the one before ends.
    inside, answered = np.cumsum(edges, axis=1, dtype=np.int8)[:, :-1].astype(bool)
    ids = tokens[inside]
    places = np.append(0, np.cumsum(found.end - found.first)).astype(np.int32)
    last = places[1:] - 1
    if returns:
        ids[last] = np.where(ids[last] == harmony_tokens.END, harmony_tokens.RETURN, ids[last])
    labelled = answered if is_trained is None else is_trained
    labels = np.where(labelled[inside], ids, np.int32(IGNORED))
    counts = (found.start - found.first, found.reasoning, found.final)
    listed = ((ids, pa.int32()), (labels, pa.int32()), (np.ones(len(ids), np.int8), pa.int8()))
    kept = {name: names[name] for name in ("exercise", "language", "synth_id")}
    pieces: list[Any] = [f'{{"dataset":{orjson.dumps(dataset).decode()}']
    for name, column in kept.items():
        pieces += [f',"{name}":"', _quoted(column), '"']
    joined = pc.binary_join_element_wise(*pieces, "}", "")
    columns = [
        pc.binary_join_element_wise(f"{dataset}:", names["synth_id"], ""),
        pa.StructArray.from_arrays(
            [pa.array([dataset] * len(names)), kept["language"], kept["exercise"], joined],
            fields=list(SCHEMA.field("source").type),
        ),
        *(pa.ListArray.from_arrays(pa.array(places), pa.array(of, kind)) for of, kind in listed),
        pa.StructArray.from_arrays(
            [pa.array(each.astype(np.int32)) for each in counts],
            fields=list(SCHEMA.field("spans").type),
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _quoted(column: pa.Array) -> pa.Array:
    """Texts as JSON has them between its quotation marks."""
    if not pc.any(pc.match_substring_regex(column, r'[\x00-\x1f"\\]')).as_py():
        return column
    return pa.array([orjson.dumps(text).decode()[1:-1] for text in column.to_pylist()])


def files_of(folder: Path, split: str) -> list[Path]:
    """The Arrow streams that a split's `state.json` names. Raises BadInput where it is damaged."""
    state = folder / SPLITS[split] / STATE
    try:
        found = orjson.loads(state.read_bytes())
        return [state.with_name(Path(item["filename"]).name) for item in found["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(state, f"names no files ({error}): build the dataset again") from error


def batches(folder: Path, split: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split in order; memory maps its files.

    Raises BadInput where a file is damaged or has other columns.
    """
    for path in files_of(folder, split):
        yield from batches_of(path, path)


def batches_of(path: Path, named: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file, whose memory map lives as long as they do."""
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            if not stream.schema.equals(SCHEMA):
                raise BadInput(named, "has other columns than its rows: build it again")
            yield from stream
    except (pa.ArrowException, OSError) as error:
        raise BadInput(named, f"is damaged ({error}): build the dataset again") from error


def row(folder: Path, split: str, number: int) -> dict[str, Any]:
    """One row of a split. Raises BadInput where there is none, and as `batches`."""
    left = number
    for batch in batches(folder, split) if number >= 0 else ():
        if left < len(batch):
            return dict(batch.slice(left, 1).to_pylist()[0])
        left -= len(batch)
    raise BadInput(folder / SPLITS[split], f"has {number - left} rows, no row {number} from 0")


_DOCUMENTS: Final = 1 << 12
_DATASET: Final = "pleias_synth"
_NAMES: Final = ("synth_id", "language", "exercise")


def _required(kind: pa.DataType) -> pa.DataType:
    """A type whose lists and structs hold no null."""
    if pa.types.is_struct(kind):
        return pa.struct(list(required({field.name: field.type for field in kind})))
    return list_of(kind.value_type) if pa.types.is_list(kind) else kind


@cache
def _required_schema() -> pa.Schema:
    """The columns of a split, made late: a builder imports this module and names no more of it."""
    return required({each.name: _required(each.type) for each in SCHEMA})


def splits(asset: str, folder: Path) -> Iterator[Split]:
    """Yield the shards of Harmony, or the splits of each shard of a dataset."""
    if asset == "synth/harmony":
        for path in sorted(folder.glob("synth_harmony_shard_*.parquet")):
            yield _harmony(folder, path.name)
    elif asset in ("synth/kd_shards", "synth_smoke/kd_shards"):
        for index in sorted(folder.glob("*/shard_*_tokens.idx")):
            if index.parent.name in ("train", "valid"):
                yield _documents(folder, index.name[6:-11], index.parent.name)
    elif asset.endswith("/distill"):
        for split, name in SPLITS.items():
            files = partial(files_of, folder, split)
            rows = partial(batches, folder, split)
            whole = f"all.{asset.replace('/', '.')}"
            yield Split(name, _required_schema, rows, arrow=files, whole=whole)


def _harmony(folder: Path, file: str) -> Split:
    def read() -> Batches:
        with pq.ParquetFile(folder / file) as opened:
            yield from opened.iter_batches(1 << 13)

    return Split("train", lambda: pq.read_schema(folder / file), read, "", file, file[-10:-8])


def _documents(folder: Path, number: str, split: str) -> Split:
    def read() -> Batches:
        tokens, spans = (
            megatron.read(folder / split / f"shard_{number}_{name}") for name in ("tokens", "span")
        )
        path, seen = folder / trace.path(number), 0
        with trace.opened(path) as opened:
            for group in range(opened.num_row_groups):
                traced = opened.read_row_group(group)
                traced = traced.filter(pc.equal(traced["split"], split)).combine_chunks()
                for first in range(0, len(traced), _DOCUMENTS):
                    part = traced.slice(first, _DOCUMENTS)
                    if part["document"].to_pylist() != [*range(seen, seen + len(part))]:
                        raise BadInput(path, "has not the documents in order: build it again")
                    yield _batch(tokens, spans, seen, part)
                    seen += len(part)
        if seen != len(tokens):
            rule = f"has {seen:,} documents of {split}, and {len(tokens):,} have tokens"
            raise BadInput(path, f"{rule}: build the shard again")

    def documents() -> Iterator[tuple[Array, Array]]:
        tokens = megatron.read(folder / split / f"shard_{number}_tokens")
        for first in range(0, len(tokens), _DOCUMENTS):
            bounds = tokens.bounds(first, min(first + _DOCUMENTS, len(tokens)))
            yield tokens.load(int(bounds[0]), int(bounds[-1])), bounds - bounds[0]

    said = Tokens(harmony_tokens.ENDOFTEXT, harmony_tokens.PADDED_VOCABULARY, documents)
    return Split(SPLITS[split], _required_schema, read, partition=number, tokens=said)


def _batch(tokens: megatron.Indexed, spans: megatron.Indexed, first: int, traced: pa.Table) -> Any:
    bounds = tokens.bounds(first, first + len(traced))
    begin, end, none = int(bounds[0]), int(bounds[-1]), np.zeros(0, np.int32)
    lengths = np.diff(bounds).astype(np.int32)
    documents = Documents(tokens.load(begin, end), spans.load(begin, end), lengths, none, none)
    found = answers(documents, True)
    if not found.final.all():
        raise BadInput(tokens.path, "has a document that ends without an answer")
    names = [pc.fill_null(traced[name], "") for name in _NAMES]
    named = pa.RecordBatch.from_arrays([each.combine_chunks() for each in names], [*_NAMES])
    return rows(documents.tokens, found, named, _DATASET)

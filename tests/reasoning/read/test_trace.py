"""A token leads to its example, its characters, its record and its raw row.

Documents of token shards as other programs get them: those of the index, over all shards.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.provenance.trace_inputs import NotTraced
from gristmill.reasoning.format import index, names, pt_file
from gristmill.reasoning.format.published import TOKENS
from gristmill.reasoning.format.shards import EOS, metas
from gristmill.reasoning.read import exported
from gristmill.reasoning.read.trace import (
    example_origins,
    record_at,
    record_origins,
    token_origins,
    trace,
    traces_of_row,
)
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import GPT2, find
from tests.reasoning.exported_root import build_dataset
from tests.reasoning.normalized_files import numbered
from tests.reasoning.published_root import PARTITION, publish_root

RECORDS = [*numbered(30), {"question": "“Straße” 🏽 naïve?", "answer": "’tis"}]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    root = tmp_path_factory.mktemp("root")
    sizes = {"seq_len": 8, "tokens_per_shard": 24, "world_size": 2}
    publish_root(root, find(GPT2, vocabulary_root), RECORDS, **sizes)
    return root


def expected_record(record: int) -> tuple[str, int]:
    """The raw file and the row of a record: the files are read one after the other."""
    half = (len(RECORDS) + 1) // 2
    number, row = (0, record) if record < half else (1, record - half)
    return f"train-0000{number}-of-00002.jsonl", row + 1


def trace_example(*place: Any) -> Any:
    return next(iter(example_origins(*place)))


def normalized(root: Path) -> list[dict[str, Any]]:
    path = root / names.NORMALIZED / names.normalized("gsm8k", "train")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_an_index_in_another_order_gives_the_same_traces(root, tmp_path):
    tokenized = root / names.TOKENIZED
    first = metas(tokenized, "gsm8k", "train")[0].path

    def found() -> list[object]:
        rows = [traces_of_row(tokenized, PARTITION, first, row) for row in range(3)]
        return [sorted(map(repr, row)) for row in rows] + [
            trace_example(tokenized, PARTITION, names.example_id("gsm8k", "train", record))
            for record in (0, 1, 2, 29)
        ]

    path = tokenized / names.split_index("gsm8k", "train")
    kept, wanted = path.read_bytes(), found()
    try:
        for step in (-1, 2):  # the other way round; every other line missing from its place
            lines = kept.splitlines(keepends=True)
            path.write_bytes(b"".join(lines[::step] + (lines[1::2] if step == 2 else [])))
            assert found() == wanted
    finally:
        path.write_bytes(kept)


def test_few_lines_of_an_index_are_read(tmp_path, monkeypatch):
    build_dataset(tmp_path)
    dataset = tmp_path / names.TOKENS / "mine"

    def scanned(*_: object) -> object:
        raise AssertionError("the index was read line by line")

    monkeypatch.setattr("gristmill.reasoning.read.trace._lines", scanned)
    (meta,) = metas(dataset, "gsm8k", "train")
    full = range(meta.num_sequences - 1)  # the last one has padding
    assert len(full) > 2
    assert all(list(traces_of_row(dataset, PARTITION, meta.path, row)) for row in full)
    assert trace_example(dataset, PARTITION, names.example_id("gsm8k", "train", 9)).record == 9


def test_every_token_of_every_sequence_is_traced(root):
    tokenized = root / names.TOKENIZED
    encoding = tiktoken_encoding(GPT2, root / "tokenizer" / GPT2.relative)
    texts = [text_of(record) for record in normalized(root)]
    traced: dict[int, list[int]] = {}
    padding = 0
    for meta in metas(tokenized, "gsm8k", "train"):
        for row, ids in enumerate(pt_file.mapped(tokenized / meta.path)):
            for column, token in enumerate(ids.tolist()):
                try:
                    found = trace(tokenized, PARTITION, meta.shard_index, row, column)
                except BadInput as error:
                    assert "is padding" in str(error)
                    assert token == EOS
                    padding += 1
                    continue
                assert found.id == token
                assert (found.sequence, found.column) == (row, column)
                assert index.below_tokenized(found.shard) == meta.path
                assert found.example_id == f"gsm8k_train_{found.record:06d}"
                assert found.token == len(traced.setdefault(found.record, []))
                traced[found.record].append(token)
    assert padding == sum(meta.pad_tokens for meta in metas(tokenized, "gsm8k", "train"))
    assert traced == {
        record: [*encoding.encode_ordinary(text), EOS] for record, text in enumerate(texts) if text
    }


@pytest.mark.parametrize("record", [0, 3, 9, 21, 30])
def test_the_characters_of_a_token_hold_its_bytes(root, record):
    text = text_of(normalized(root)[record])
    example = f"gsm8k_train_{record:06d}"
    count = trace_example(root / names.TOKENIZED, PARTITION, example).num_tokens
    covered = np.zeros(len(text), dtype=bool)
    before = 0
    encoding = tiktoken_encoding(GPT2, root / "tokenizer" / GPT2.relative)
    for token in range(count):
        steps = list(example_origins(root / names.TOKENIZED, PARTITION, example, token))
        start, end = map(int, str(steps[1].facts()["characters"]).split("-"))
        octets = encoding.decode_single_token_bytes(steps[0].facts()["id"])  # type: ignore[arg-type]
        assert octets in text[start:end].encode()
        before += len(octets)
        assert len(text[:start].encode()) < before <= len(text[:end].encode())
        covered[start:end] = True
    assert covered.all()


def test_ends_have_no_characters_and_bad_lines_of_an_index_are_named(root):
    tokenized = root / names.TOKENIZED
    count = trace_example(tokenized, PARTITION, "gsm8k_train_000000").num_tokens
    steps = list(example_origins(tokenized, PARTITION, "gsm8k_train_000000", count))
    assert steps[0].facts()["id"] == EOS
    assert str(steps[1].facts()["characters"]).startswith("none")
    found = trace(tokenized, PARTITION, 1, 2, 3)
    number = int(found.shard[-8:-3])
    by_token = token_origins(tokenized, PARTITION, number, found.sequence, found.column)
    by_example = example_origins(tokenized, PARTITION, found.example_id, found.token)
    assert [step.facts() for step in by_token] == [step.facts() for step in by_example]
    path = root / names.TOKENIZED / names.split_index("gsm8k", "train")
    kept = path.read_bytes()
    try:
        path.write_bytes(b'{"example_id": 5}\n' * 9)
        with pytest.raises(BadInput, match="has no example"):
            trace_example(root / names.TOKENIZED, PARTITION, "gsm8k_train_000002")
    finally:
        path.write_bytes(kept)


def test_a_record_leads_to_its_raw_row_and_its_bytes(root):
    for record in range(31):
        first, raw = (
            step.facts() for step in record_origins(root / names.NORMALIZED, PARTITION, record)
        )
        row = expected_record(record)[1]
        assert (first["line"], raw["raw_row"]) == (record + 1, row)
        begin, end = map(int, str(raw["raw_bytes"]).split("-"))
        octets = (root / str(raw["raw_file"])).read_bytes()
        assert octets[begin:end] == octets.splitlines()[row - 1]
    with pytest.raises(NotTraced, match="has no record 31"):
        list(record_origins(root / names.NORMALIZED, PARTITION, 31))


def test_places_of_lines_are_those_of_the_file_as_it_is(root, tmp_path):
    """They are kept while a file does not change, so that a sequence costs one pass."""
    path = tmp_path / names.normalized("gsm8k", "train")
    path.parent.mkdir(parents=True)
    lines = (root / names.NORMALIZED / path.relative_to(tmp_path)).read_bytes().splitlines(True)
    for first, blank in ((lines[0], 0), (b'{"question": "another"}\n', 0), (b" \r\n\n", 2)):
        path.write_bytes(b"".join([first, *lines[1:]]))
        record, line = record_at(tmp_path, PARTITION, 7 - bool(blank))
        assert (record, line) == (json.loads(lines[7]), 8 + bool(blank))
    with pytest.raises(NotTraced, match="has no record -1"):
        record_at(tmp_path, PARTITION, -1)


def test_a_changed_raw_file_is_named(root):
    path = root / "drops/reasoning/gsm8k" / expected_record(0)[0]
    octets = path.read_bytes()
    stat = path.stat()
    path.write_bytes(octets + b"\n")
    try:
        steps = list(example_origins(root / names.TOKENIZED, PARTITION, "gsm8k_train_000000"))
        assert "raw_note" in steps[-1].facts()
    finally:
        path.write_bytes(octets)
        __import__("os").utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize(
    ("shard", "row", "token", "rule"),
    [
        (99, 0, 0, "there is no such shard"),
        (0, 3, 0, "has 3 sequences of 8 tokens, no token 0 of sequence 3"),
        (0, -1, 0, "no token 0 of sequence -1"),
        (0, 0, 8, "no token 8 of sequence 0"),
        (0, 0, -1, "no token -1 of sequence 0"),
    ],
)
def test_a_token_that_is_not_there_is_refused(root, shard, row, token, rule):
    with pytest.raises(BadInput, match=rule):
        trace(root / names.TOKENIZED, PARTITION, shard, row, token)


def test_an_example_and_its_token_that_are_not_there_are_refused(root, tmp_path):
    tokenized, first = root / names.TOKENIZED, "gsm8k_train_000000"
    count = trace_example(tokenized, PARTITION, first).num_tokens
    for folder, example, token, rule in (
        *((tokenized, f"gsm8k_{each}", 0, "has no example") for each in ("train_000005", "test_1")),
        (tokenized, "x", 0, "has no example"),
        *((tokenized, first, each, "tokens with its end") for each in (-1, count + 1)),
        (tmp_path, first, 0, "build the shards of this split"),
    ):
        with pytest.raises(BadInput, match=rule):
            trace_example(folder, PARTITION, example, token)


def dataset(root: Path, ranks: int) -> Path:
    """A dataset by the tokenizer tiny, several sequences a shard."""
    build_dataset(root, seq_len=32, tokens_per_shard=256, world_size=ranks)
    return root / names.TOKENS / "mine"


def documents(folder: Path, root: Path) -> list[list[int]]:
    """The documents of the split, and a check of their bounds."""
    (split,) = exported.splits_of(TOKENS, folder, "gsm8k__train", root)
    assert split.tokens is not None
    found = []
    for tokens, bounds in split.tokens.batches():
        assert (bounds[0], bounds[-1]) == (0, len(tokens))
        found += [tokens[a:b].tolist() for a, b in pairwise(bounds)]
    return found


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("piece", [50, 1 << 22])
def test_documents_are_those_of_the_index_over_all_shards(ranks, piece, tmp_path, monkeypatch):
    monkeypatch.setattr(exported, "_PIECE", piece)
    folder = dataset(tmp_path, ranks)
    assert len(list(folder.glob("*/*/*.bin"))) > ranks
    (split,) = exported.splits_of(TOKENS, folder, "gsm8k__train", tmp_path)
    rows = [row for batch in split.batches() for row in batch["input_ids"].to_pylist()]
    found = documents(folder, tmp_path)
    assert len(found) == 12
    assert sorted(found) == sorted(rows)
    if ranks == 1:
        assert found == rows


def test_shards_that_end_within_a_document_are_refused(tmp_path):
    folder = dataset(tmp_path, 1)
    path = max(folder.glob("*/*/*.meta.json"))
    text = path.read_text()
    count = int(text.partition('"text_tokens": ')[2].partition(",")[0])
    path.write_text(text.replace(f'"text_tokens": {count}', f'"text_tokens": {count - 1}'))
    with pytest.raises(BadInput, match="tokens behind its last document"):
        documents(folder, tmp_path)

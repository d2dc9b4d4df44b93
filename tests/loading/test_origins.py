"""Every sample of random batches, made again from the raw bytes that its origin names."""

import base64
import csv
import gzip
import io
import itertools
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import chess.pgn
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import tiktoken

from gristmill.chess import GameSpliceDataset
from gristmill.loading import Loader
from gristmill.loading.mix_file import read_mix
from gristmill.synth.raw import TEXTS
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import GPT2, O200K
from tests import budget
from tests.loading.test_mix_file import SOURCES, written

pytestmark = pytest.mark.slow
SAMPLES = 1000
BATCH = 32
EACH = {"reasoning/tokenized/gpt2": 0.2}
"""Seconds that a sample takes, about; default 0.01. One of GPT-2 shards has dozens of documents."""

MOVES = ("up", "down", "left", "right")
TINY_END = 264
MONTH = "chess/dataset/elite_2024-01_game"

Row = dict[str, npt.NDArray[Any]]
Facts = list[dict[str, Any]]
Remake = Callable[[Path, Row, Facts], object]
"""Asserts that a row is what the raw bytes give; returns what must be equal for all rows."""


def _bytes(root: Path, file: str, span: str) -> bytes:
    begin, end = map(int, span.split()[0].split("-"))
    data = (root / file).read_bytes()
    return (gzip.decompress(data) if file.endswith(".gz") else data)[begin:end]


def _without(text: str, parts: list[str]) -> str:
    """The text without the parts, which it has in this order."""
    kept = []
    for part in parts:
        before, found, text = text.partition(part)
        assert found == part
        kept.append(before)
    return "|".join([*kept, text])


@cache
def _words(root: Path) -> tiktoken.Encoding:
    return tiktoken_encoding(O200K, root / "tokenizer" / O200K.relative)


def _spoken(root: Path, row: Row) -> str:
    """The text of a document or row; special tokens are their numbers."""
    ordinary = _words(root)
    ids = row["tokens" if "tokens" in row else "input_ids"][: int(row["length"])].tolist()
    parts = itertools.groupby(ids, key=lambda each: each >= ordinary.n_vocab - 1)
    return "".join(
        "".join(f"<{each}>" for each in some) if special else ordinary.decode(list(some))
        for special, some in parts
    )


def _step(root: Path, row: Row, facts: Facts) -> object:
    raw = facts[-1]
    line = json.loads(_bytes(root, raw["raw_steps"], raw["raw_line_bytes"]))
    assert line["board"] == row["ranks"].tolist()
    assert MOVES.index(line["move"]) == row["move_dir"]
    assert line["step_index"] == row["step_index"]
    return None


@cache
def _move_words(root: Path) -> dict[int, str]:
    known = GameSpliceDataset(root / MONTH).vocabulary()
    return {number: word for word, number in known.items()}


def _splice(root: Path, row: Row, facts: Facts) -> object:
    raw = facts[-1]
    with zipfile.ZipFile(root / raw["raw_file"]) as archive:
        text = archive.read(raw["raw_member"])
    begin, end = map(int, raw["raw_member_bytes"].split("-"))
    game = chess.pgn.read_game(io.StringIO(text[begin:end].decode()))
    assert game is not None
    moves = [move.uci() for move in game.mainline_moves()]
    words = _move_words(root)
    context = row["context"][row["context_mask"]].tolist()
    target = row["target"][row["target_mask"]].tolist()
    assert len(context) == facts[0]["ply"]
    assert [words[each] for each in context + target] == moves[: len(context) + len(target)]
    assert row["side_to_move"] == len(context) % 2
    return None


def _kd_document(root: Path, row: Row, facts: Facts) -> object:
    raw = facts[-1]
    group = pq.ParquetFile(root / raw["raw_file"]).read_row_group(raw["raw_row_group"])
    (found,) = group.slice(raw["raw_row_in_group"] - 1, 1).to_pylist()
    return _without(_spoken(root, row), [found[name] for name in TEXTS])


def _talk(root: Path, row: Row, facts: Facts) -> object:
    raw = facts[-1]
    line = (root / raw["raw_file"]).read_text().splitlines()[int(raw["raw_row"]) - 1]
    question, answer = (message["content"] for message in json.loads(line)["messages"])
    assert answer.startswith("<think>One more.</think>")
    return _without(_spoken(root, row), [question, "One more.", answer.rpartition(">")[2]])


def _record(row: str) -> list[str]:
    """Question and answer of a row of JSON or CSV, as corpora are normalised."""
    if row.startswith("{"):
        found = [json.loads(row)[name] for name in ("question", "answer")]
    else:
        (found,) = csv.reader(io.StringIO(row, newline=""))
    return [each.replace("\r\n", "\n").replace("\r", "\n").strip() for each in found]


def _sequence(tokenizer: Callable[[Path], Callable[[list[int]], bytes]], end: int) -> Remake:
    def remade(root: Path, row: Row, facts: Facts) -> object:
        ids, decode = row["input_ids"].tolist(), tokenizer(root)
        examples = [
            (facts[at], facts[at + 3]) for at in range(0, len(facts), 4)
        ]  # each leads over its text and its normalised line
        columns = [int(example["column"]) for example, _ in examples] + [len(ids)]
        assert columns[0] == 0
        for (example, raw), (first, stop) in zip(
            examples, itertools.pairwise(columns), strict=True
        ):
            question, answer = _record(_bytes(root, raw["raw_file"], raw["raw_row_bytes"]).decode())
            text = f"{question}\n\nAnswer:\n{answer}".encode()
            own = ids[first:stop]
            if stop == len(ids) and end in own:  # the last sequence is filled with it
                own = own[: own.index(end) + 1]
            is_cut = int(example["token"]) + len(own) <= int(example["num_tokens"])
            if not is_cut:
                assert own.pop() == end
            piece = decode(own)
            assert piece in text
            assert text.endswith(piece) or is_cut
            assert text.startswith(piece) or int(example["token"]) > 0
        return None

    return remade


@cache
def _gpt2(root: Path) -> Callable[[list[int]], bytes]:
    return tiktoken_encoding(GPT2, root / "tokenizer" / GPT2.relative).decode_bytes


@cache
def _tiny(root: Path) -> Callable[[list[int]], bytes]:
    lines = (root / "drops/tokenizers/tiny/tiny.tiktoken").read_text().splitlines()
    tokens = {int(rank): base64.b64decode(token) for token, rank in map(str.split, lines)}
    return lambda ids: b"".join(tokens[each] for each in ids)


SYMMETRIES: list[Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = [
    lambda grid: grid,
    lambda grid: np.rot90(grid, 1),
    lambda grid: np.rot90(grid, 2),
    lambda grid: np.rot90(grid, 3),
    np.fliplr,
    np.flipud,
    lambda grid: grid.T,
    lambda grid: np.rot90(grid, 2).T,
]


def _grid(root: Path, row: Row, facts: Facts) -> object:
    (found,) = facts
    task = json.loads((root / found["raw_file"]).read_bytes())
    pairs = [pair for part in task.values() for pair in part]  # in the order of the file
    pair = pairs[int(found["place"].split()[1])]
    _, *done = found["identifier"].split()[1].split("_")
    symmetry, colours = done or ("t0", "0123456789")
    top, left = (int(word.split()[1]) for word in found["first cell"].split(", "))
    for side, column in (("input", "inputs"), ("output", "labels")):
        grid = np.array(list(map(int, colours)))[np.array(pair[side])]
        grid = SYMMETRIES[int(symmetry[1:])](grid)
        rows, columns = grid.shape
        held = row[column].reshape(30, 30)[top : top + rows, left : left + columns]
        assert np.array_equal(held, grid + 2)
        assert np.count_nonzero(row[column] > 1) == grid.size
    return None


REMADE: dict[str, Remake] = {
    "macroxue/pools/samples": _step,
    MONTH: _splice,
    "megatron/synth_kd_v1": _kd_document,
    "megatron/chat/talks__00": _talk,
    "distill/synth/02": _kd_document,
    "distill/chat/talks__00": _talk,
    "reasoning/tokenized/gpt2": _sequence(_gpt2, 50_256),
    "reasoning/tokens/mine": _sequence(_tiny, TINY_END),
    "puzzles/arc-sample": _grid,
}


@pytest.mark.parametrize("path", SOURCES)
def test_samples_of_random_batches_are_what_their_raw_bytes_give(sample_root, tmp_path, path):
    root, samples = sample_root.data, budget.count(SAMPLES, 1 / EACH.get(path, 0.01) / len(SOURCES))
    text = f'seed = 3\nmax_epochs = 999\n[source.one]\npath = "{path}"\nepochs = 999\n'
    plan = read_mix(written(tmp_path, text + SOURCES[path]), root)
    (source,) = plan.sources
    equal, done = set[object](), 0
    for batch in Loader(plan, BATCH, form="numpy"):
        for place, number in enumerate(batch["number"].tolist()):
            row = {
                name: column[place]
                for name, column in batch.items()
                if isinstance(column, np.ndarray)
            }
            equal.add(REMADE[path](root, row, [step.facts() for step in source.origin(number)]))
            done += 1
        if done >= samples:
            break
    assert done >= samples
    assert len(equal) == 1

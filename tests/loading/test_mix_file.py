"""Mix files: every family by its folder, and what is refused with file, key and cure."""

import base64
import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import multiprocessing
import os
import random
import signal
import time
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import chess.pgn
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiktoken
import zstandard

from gristmill.chess import GameSpliceDataset
from gristmill.contract import BadInput, GristmillError
from gristmill.loading import Loader, Plan
from gristmill.loading.mix_file import read_mix, read_state
from gristmill.macroxue import StepDataset
from gristmill.provenance.trace_inputs import raw_text
from gristmill.synth.raw import TEXTS
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import GPT2, O200K
from tests import budget
from tests.loading import training_run
from tests.loading.training_run import DONE, STEPS, Run

D6 = 'path = "macroxue/packs/sample_d6"'
SOURCES = {
    "macroxue/pools/samples": 'held_out = 0.2\nside = "held_out"',
    "chess/dataset/elite_2024-01_game": 'split = "train"\nhorizon = 2',
    "megatron/synth_kd_v1": 'split = "valid"',
    "megatron/chat/talks__00": 'split = "valid"',
    "distill/synth/02": 'split = "train"',
    "distill/chat/talks__00": 'split = "valid"',
    "reasoning/tokenized/gpt2": 'corpora = ["gsm8k"]',
    "reasoning/tokens/mine": 'splits = ["train"]',
    "puzzles/arc-sample": "groups = true",
}


def written(folder: Path, text: str) -> Path:
    file = folder / "mix.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_of_each_family_is_opened(sample_root, tmp_path, path):
    text = f'seed = 3\n[source.one]\npath = "{path}"\nepochs = 2\n{SOURCES[path]}\n'
    plan = read_mix(written(tmp_path, text), sample_root.data)
    (source,) = plan.sources
    assert source.identity.artifact.partition(" ")[0].endswith(path)
    assert (plan.seed, plan.length) == (3, 2 * int(source.cuts[-1]))
    assert plan.at(plan.length - 1 + 0 * source.cuts)[0].tolist() == [0] * len(source.cuts)
    assert len(_remade(plan, path, sample_root.data, 2)) == 1


def test_a_side_of_a_split_is_that_of_the_reader(sample_root, tmp_path):
    sides = []
    for side in ("train", "held_out"):
        text = f'[source.a]\n{D6}\nepochs = 1\nheld_out = 0.3\nside = "{side}"\n'
        sides.append(read_mix(written(tmp_path, text), sample_root.data))
    train, held_out = StepDataset(sample_root.data / "macroxue/packs/sample_d6").split(0.3)
    assert [plan.length for plan in sides] == [len(train), len(held_out)]


def test_several_months_are_one_source(sample_root, tmp_path):
    months = [f"chess/dataset/elite_2024-0{month}_game" for month in (1, 2)]
    plan = read_mix(
        written(tmp_path, f"[source.a]\npath = {months}\nepochs = 1\n"), sample_root.data
    )
    assert len(plan.sources[0].cuts) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"has no table \[source.NAME\]"),
        ("source = 3", r"has no table \[source.NAME\]"),
        (f"other = 1\n[source.a]\n{D6}\nepochs = 1", "other is no key: use seed, window"),
        (f"[source.a]\n{D6}", "say one of epochs, tokens, weight"),
        (f"[source.a]\n{D6}\nepochs = 1\ntokens = 2", "say one of epochs, tokens, weight"),
        (f'[source.a]\n{D6}\nepochs = "1"', "source.a: epochs is '1': a number is needed"),
        (f"[source.a]\n{D6}\nepochs = true", "source.a: epochs is True"),
        (f"[source.a]\n{D6}\nepochs = 9", "9.00 epochs, more than 4"),
        (f"[source.a]\n{D6}\nweight = 9", "weights= with samples="),
        (f"[source.a]\n{D6}\ntokens = 9", "its samples have no tokens"),
        (f"[source.a]\n{D6}\nepochs = 1\nsplit = 'x'", "source.a: split: Unexpected keyword"),
        (f"[source.a]\n{D6}\nepochs = 1\nheld_out = '0.2'", "source.a: held_out: Input should be"),
        (f"[source.a]\n{D6}\nepochs = 1\nside = 'left'", "source.a: side: Input should be 'train'"),
        (f"seed = 'x'\n[source.a]\n{D6}\nepochs = 1", "seed is 'x': a whole number"),
        ("[source.a]\npath = 3\nepochs = 1", "source.a: path is 3: a folder or a list"),
        ("[source.a]\npath = []\nepochs = 1", r"source.a: path is \[\]"),
        ('[source.a]\npath = "gone"\nepochs = 1', "gone"),
        ('[source.a]\npath = "chess/raw/elite/2024-01"\nepochs = 1', "takes no artifacts of"),
        (f"[source.a]\n{D6}\nepochs = 1\n[source.b]\n{D6}\nepochs = 1", "is the same data as"),
    ],
)
def test_what_is_no_mix_is_refused(sample_root, tmp_path, text, words):
    with pytest.raises(GristmillError, match=words):
        read_mix(written(tmp_path, text), sample_root.data)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"batches": []}'])
def test_a_file_that_is_no_state_is_refused(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(GristmillError, match=r"state\.json"):
        read_state(tmp_path / "state.json")


TEXT = "".join(f"line {number}\n" for number in range(1000)).encode() + b"\xff!"
PACKED = {
    "a.jsonl": TEXT,
    "a.jsonl.gz": gzip.compress(TEXT[:700]) + gzip.compress(TEXT[700:]),
    "a.jsonl.bz2": bz2.compress(TEXT),
    "a.jsonl.XZ": lzma.compress(TEXT),
    "a.jsonl.zst": zstandard.compress(TEXT),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("read", [7, 1 << 20])
def test_bytes_of_a_file_are_those_of_its_text(tmp_path, monkeypatch, name, read):
    monkeypatch.setattr("gristmill.provenance.trace_inputs._READ", read)
    (tmp_path / name).write_bytes(PACKED[name])
    for begin, end in ((0, 6), (3, 3), (695, 720), (len(TEXT) - 3, len(TEXT))):
        wanted = TEXT[begin:end].decode("utf-8", "backslashreplace")
        facts = {"raw_file": name, "raw_bytes": "0-9", "raw_unpacked_bytes": f"{begin}-{end}"}
        assert raw_text(tmp_path, facts) == wanted
    assert raw_text(tmp_path, {"raw_steps": name, "raw_unpacked_bytes": "0-4"}) == "line"
    assert raw_text(tmp_path, {"raw_file": name, "raw_meta_bytes": "0-4"}) is None
    assert raw_text(tmp_path / "in", {"raw_file": f"../{name}", "raw_bytes": "0-4"}) is None
    size = (tmp_path / name).stat().st_size
    whole = raw_text(tmp_path, {"raw_file": name, "raw_bytes": f"0-{size}"})
    assert whole == (TEXT.decode("utf-8", "backslashreplace") if name == "a.jsonl" else None)
    (tmp_path / "a.json").write_bytes(b" " * 65_537)
    assert raw_text(tmp_path, {"raw_file": "a.json", "raw_bytes": "0-65537"}) is None
    assert raw_text(tmp_path, {"raw_file": "a.json", "raw_bytes": "0-65536"}) == " " * 65_536


def test_a_member_and_a_row_have_their_text_and_a_damaged_file_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.pgn", b"another")
        archive.writestr("a.pgn", TEXT)
    facts = {"raw_file": "a.zip", "raw_member": "a.pgn", "raw_unpacked_bytes": "7-13"}
    assert raw_text(tmp_path, facts) == TEXT[7:13].decode()
    table = pa.table({"query": [f"é{number}" for number in range(10)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    facts = {"raw_file": "a.parquet", "raw_row": 6, "raw_row_group": 1, "raw_row_in_group": 2}
    assert json.loads(raw_text(tmp_path, facts) or "") == {"query": "é5"}
    assert "é" in (raw_text(tmp_path, facts) or "")
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT)[:50])
    with pytest.raises(BadInput, match=r"a\.gz"):
        raw_text(tmp_path, {"raw_file": "a.gz", "raw_unpacked_bytes": "0-9000"})


def test_where_no_file_is_named_or_it_is_gone_or_changed_there_is_no_text(tmp_path):
    assert raw_text(tmp_path, {"row": 3, "raw_bytes": "0-3"}) is None
    facts = {"raw_file": "a.jsonl", "raw_bytes": "0-3", "raw_note": "the file is gone"}
    assert raw_text(tmp_path, facts) is None
    (tmp_path / "a.jsonl").write_bytes(TEXT)
    assert raw_text(tmp_path, facts) is None


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
    line = json.loads(_bytes(root, raw["raw_steps"], raw["raw_unpacked_bytes"]))
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
    begin, end = map(int, raw["raw_unpacked_bytes"].split("-"))
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
            question, answer = _record(_bytes(root, raw["raw_file"], raw["raw_bytes"]).decode())
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


def _remade(plan: Plan, path: str, root: Path, samples: int) -> set[object]:
    """Compare some samples of a plan with what their raw bytes give; what all have in common."""
    (source,) = plan.sources
    equal, done = set[object](), 0
    for batch in Loader(plan, min(BATCH, samples), form="numpy"):
        for place, number in enumerate(batch["number"].tolist()):
            row = {
                name: column[place]
                for name, column in batch.items()
                if isinstance(column, np.ndarray)
            }
            equal.add(REMADE[path](root, row, [step.facts() for step in source.origin(number)]))
            done += 1
        if done >= samples:
            return equal
    raise AssertionError(f"{done} samples instead of {samples}")


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES)
def test_samples_of_random_batches_are_what_their_raw_bytes_give(sample_root, tmp_path, path):
    samples = budget.count(SAMPLES, 1 / EACH.get(path, 0.01) / len(SOURCES))
    text = f'seed = 3\nmax_epochs = 999\n[source.one]\npath = "{path}"\nepochs = 999\n'
    plan = read_mix(written(tmp_path, text + SOURCES[path]), sample_root.data)
    assert len(_remade(plan, path, sample_root.data, samples)) == 1


KILLS = 100
# One kill, about, where the machine does nothing else.
SECONDS = 0.3


def mix(path: str, seed: int) -> str:
    """A mix file of one artifact."""
    return f'seed = {seed}\n[source.one]\npath = "{path}"\nepochs = 4\n{SOURCES[path]}\n'


def written_run(folder: Path, data: Path, text: str) -> Run:
    """A run by the text of a mix file that has not begun."""
    folder.mkdir()
    (folder / "mix.toml").write_text(text)
    return Run(folder, data)


def killed(run: Run, world: int, after: int) -> bool:
    """Go on with a run and kill it after so many steps more; whether it was alive then."""
    steps = run.folder / STEPS
    before = steps.read_bytes().count(b"\n") if steps.exists() else 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([training_run.__name__])
    process = context.Process(
        target=training_run.train, args=(str(run.folder), str(run.data), world)
    )
    process.start()
    try:
        while process.is_alive():
            # What the state did not know is cut off first, and written again.
            if steps.exists() and steps.read_bytes().count(b"\n") >= before + after:
                os.kill(process.pid or 0, signal.SIGKILL)
                break
            time.sleep(0.002)
    finally:
        process.join()
    return process.exitcode == -signal.SIGKILL


def is_as_without_kills(run: Run, text: str, data: Path) -> bool:
    """Whether a run has the steps of a run without kills: all, or the first ones if it was killed.

    A kill can cut the last line short.
    """
    given = (run.folder / STEPS).read_text().splitlines(keepends=True)
    whole = written_run(run.folder.with_name(f"{run.folder.name} whole"), data, text).lines(1)
    if (run.folder / DONE).exists():
        return given == [line for line, _ in whole]
    lines = [line for line in given if line.endswith("\n")]
    return lines == [line for line, _ in itertools.islice(whole, len(lines))]


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES)
def test_a_killed_run_gives_each_step_once(sample_root, tmp_path, path):
    kills = budget.count(KILLS, 1 / (SECONDS * len(SOURCES)))
    dice, done = random.Random(path), 0
    for seed in itertools.count():
        text = mix(path, seed)
        run = written_run(tmp_path / str(seed), sample_root.data, text)
        while done < kills and not (run.folder / DONE).exists():
            done += killed(run, dice.choice((1, 2, 3)), dice.randrange(1, 6))
        assert is_as_without_kills(run, text, sample_root.data)
        if done >= kills:
            return

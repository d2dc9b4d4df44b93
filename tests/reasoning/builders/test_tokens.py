"""Datasets of any tokenizer: ids, forms, index and manifest, by ranks, and what is refused."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.reasoning import ShardReader, tokenize
from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.shard_join import TokenizeSummary
from gristmill.reasoning.builders.shards import DatasetRanks, Split
from gristmill.reasoning.builders.tokens import dataset_form, tokenize_dataset
from gristmill.reasoning.config import AlignConfig, TokensConfig
from gristmill.reasoning.format import id_files, index, names
from gristmill.reasoning.format.shards import metas, read_manifest
from gristmill.reasoning.laws import of_subject
from gristmill.reasoning.render.text import text_of
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT
from gristmill.vocabularies.pinned import GPT2, find, read_declared
from gristmill.vocabularies.placing import place_tokenizer
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer
from tests.paths import CHECKOUT
from tests.publish.tiny import snapshot
from tests.reasoning.aligned_root import worked
from tests.reasoning.normalized_files import numbered, write
from tests.tiny_tokenizer import put_tiny

CONTROL = "a <|endoftext|> in a text"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    drop = put_tiny(folder)
    place_tokenizer(drop, read_declared(drop), folder / "tokenizer")
    return open_tokenizer(folder / "tokenizer/tiny")


@pytest.fixture
def splits(tmp_path: Path) -> list[Split]:
    found = []
    for corpus, count in (("gsm8k", 40), ("my_math", 7)):
        path = tmp_path / names.NORMALIZED / names.normalized(corpus, "train")
        write(path, [*numbered(count), {"question": CONTROL}])
        found.append(Split(path, corpus, "train"))
    return found


def config_of(tokenizer: Tokenizer, **values: object) -> TokensConfig:
    given = {"seq_len": 32, "tokens_per_shard": 256, "corpora": ("gsm8k",), "tokenizer": "tiny"}
    return TokensConfig(vocabulary=tokenizer.path, **given | values)  # type: ignore[arg-type]


def make(splits: list[Split], out: Path, tokenizer: Tokenizer, **values: object) -> TokenizeSummary:
    """Write the dataset mine."""
    config = config_of(tokenizer, **values)
    return tokenize_dataset(splits, out, config, dataset_form(config, tokenizer, "mine"))


def broken(folder: Path, splits: list[Split], tokenizer: Tokenizer) -> list[Violation]:
    subject = Subject(folder, inputs=[splits[0].jsonl.parents[1], tokenizer.path.parents[1]])
    laws = (of_subject.tokens, of_subject.token_steps)
    return [each for law in laws for each in law(subject)]


@pytest.mark.parametrize("outputs", [("bin",), ("safetensors", "bin")])
def test_the_ids_are_those_of_the_tokenizer_and_the_laws_hold(
    tmp_path: Path, splits: list[Split], tokenizer: Tokenizer, outputs: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    summary = make(splits, out, tokenizer, outputs=outputs)
    assert broken(out, splits, tokenizer) == []
    assert (summary.control_texts, summary.fast_texts) == (2, 0)
    for split in splits:
        texts = [text_of(json.loads(line)) for line in split.jsonl.read_text().splitlines()]
        expected = b"".join(
            bytes(each) + np.int32(tokenizer.eod).tobytes()
            for each in tokenizer.encode(list(filter(None, texts))).ids
        )
        listed = metas(out, split.corpus, split.split)
        ids = np.concatenate([id_files.of_meta(out, meta).ravel() for meta in listed])
        assert ids.dtype == np.uint16
        assert ids[: len(expected) // 4].tolist() == np.frombuffer(expected, "<i4").tolist()
        assert set(ids[len(expected) // 4 :].tolist()) <= {tokenizer.eod}
        first = next(index.rows(out / names.split_index(split.corpus, split.split)))
        assert first.shard_path == f"reasoning/tokens/mine/{listed[0].path}"
        assert listed[0].path.endswith(outputs[0])
    listed = read_manifest(out)
    assert {(meta.tokenizer, meta.dtype, meta.eod, meta.ids) for meta in listed} == {
        ("tiny", "uint16", 264, 265)
    }
    batch = next(ShardReader(out).batches(999))
    assert batch["input_ids"].dtype == np.int32
    assert len(batch["input_ids"]) == sum(meta.num_sequences for meta in listed)


def test_ids_that_need_more_than_two_bytes_are_int32(
    tmp_path: Path, splits: list[Split], tokenizer: Tokenizer
) -> None:
    make(splits, tmp_path / "out", replace(tokenizer, size=70_000))
    (name,) = {meta.dtype for meta in read_manifest(tmp_path / "out")}
    assert name == "int32"


def test_ranks_that_ran_one_by_one_make_the_same_files(
    tmp_path: Path, splits: list[Split], tokenizer: Tokenizer
) -> None:
    config = config_of(tokenizer, world_size=3)
    form = dataset_form(config, tokenizer, "mine")
    tokenize_dataset(splits, tmp_path / "at_once", config, form)
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    ranks = DatasetRanks(splits, config, form)
    for rank in (2, 0, 1):
        ranks.make(rank, store, SILENT)
        assert all(any(store.folder.glob(f"{name}*")) for name in ranks.names(rank))
    tokenize_dataset(splits, tmp_path / "by_rank", config, form, store)
    assert snapshot(tmp_path / "by_rank") == snapshot(tmp_path / "at_once")


def _other_step(folder: Path) -> None:
    path = folder / "gsm8k/train.align.jsonl"
    row, *rest = map(json.loads, path.read_bytes().splitlines())
    first = row["token_offset_ranges"][0]
    row["token_offset_ranges"][0] = [first[0], first[1] + 10_000]
    path.write_text("".join(json.dumps(each) + "\n" for each in (row, *rest)))


def _other_id(folder: Path) -> None:
    path = folder / "gsm8k/train/shard_00000.bin"
    path.write_bytes(b"\1\0" + path.read_bytes()[2:])


def _cut(folder: Path) -> None:
    path = folder / "my_math/train/shard_00000.bin"
    path.write_bytes(path.read_bytes()[:-2])


def _without_a_shard(folder: Path) -> None:
    entries = json.loads((folder / names.MANIFEST).read_bytes())
    (folder / names.MANIFEST).write_text(json.dumps(entries[1:], indent=2))


def _another_end(folder: Path) -> None:
    path = folder / "gsm8k/train/shard_00000.meta.json"
    path.write_text(path.read_text().replace('"eod": 264', '"eod": 263'))


@pytest.mark.parametrize(
    ("plant", "law"),
    [
        (_other_id, "sha256"),
        (_cut, "readable"),
        (_without_a_shard, "manifest"),
        (_another_end, "one kind of shards"),
        (_other_step, "bounds"),
    ],
)
def test_a_planted_fault_breaks_a_law(
    tmp_path: Path,
    splits: list[Split],
    tokenizer: Tokenizer,
    plant: Callable[[Path], None],
    law: str,
) -> None:
    out = tmp_path / "out"
    write(splits[0].jsonl, worked(40))
    make(splits, out, tokenizer, outputs=("bin", "alignment"))
    assert broken(out, splits, tokenizer) == []
    plant(out)
    assert law in {found.law for found in broken(out, splits, tokenizer)}


def test_another_file_of_the_tokenizer_is_refused_before_anything_is_written(
    tmp_path: Path, splits: list[Split], tokenizer: Tokenizer
) -> None:
    with pytest.raises(BadInput, match="is expected"):
        make(splits, tmp_path / "out", replace(tokenizer, sha256="0" * 64))
    assert not (tmp_path / "out").exists()


def test_a_record_that_cannot_be_encoded_is_named_with_its_line(
    tmp_path: Path, splits: list[Split], tokenizer: Tokenizer
) -> None:
    with splits[1].jsonl.open("a") as file:
        file.write('{"question": 5}\n')
    with pytest.raises(BadInput, match="question: must be text or null") as caught:
        make(splits, tmp_path / "out", tokenizer)
    assert caught.value.row == 9


def test_a_build_that_is_killed_continues_with_its_parts(
    tmp_path: Path, splits: list[Split], tokenizer: Tokenizer
) -> None:
    config = config_of(tokenizer)
    form = dataset_form(config, tokenizer, "mine")
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    script = (
        "import os, pickle, signal, sys\n"
        "from gristmill.reasoning.builders import shards, tokens\n"
        "splits, out, config, form, store = pickle.load(sys.stdin.buffer)\n"
        "joined = shards.Joiner.add\n"
        "def add(self, *args):\n"
        "    joined(self, *args)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "shards.Joiner.add = add\n"
        "tokens.tokenize_dataset(splits, out, config, form, store)\n"
    )
    given = pickle.dumps((splits, tmp_path / "killed", config, form, store))
    done = subprocess.run([sys.executable, "-c", script], input=given, cwd=CHECKOUT, check=False)
    assert done.returncode == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    assert kept
    tokenize_dataset(splits, tmp_path / "again", config, form, store)
    assert {name: (store.folder / name).stat().st_mtime_ns for name in kept} == kept
    tokenize_dataset(splits, tmp_path / "new", config, form)
    assert snapshot(tmp_path / "again") == snapshot(tmp_path / "new")


def test_gpt2_shards_and_a_dataset_of_gpt2_have_the_same_ids(
    tmp_path: Path, splits: list[Split], vocabulary_root: Path
) -> None:
    gpt2 = of_pinned(GPT2, find(GPT2, vocabulary_root))
    make(splits[:1], tmp_path / "bin", gpt2)
    tokenize(splits[0].jsonl, tmp_path / "pt", config_of(gpt2))
    one, other = (
        [id_files.of_meta(tmp_path / name, meta) for meta in metas(tmp_path / name, *splits[0][1:])]
        for name in ("bin", "pt")
    )
    assert [ids.dtype for ids in (one[0], other[0])] == [np.uint16, np.int32]
    assert np.array_equal(np.concatenate(one), np.concatenate(other))


def test_a_dataset_of_gpt2_has_the_alignment_of_its_shards(
    tmp_path: Path, vocabulary_root: Path
) -> None:
    gpt2 = of_pinned(GPT2, find(GPT2, vocabulary_root))
    path = write(tmp_path / names.NORMALIZED / names.normalized("gsm8k", "train"), worked(30))
    split, outputs = Split(path, "gsm8k", "train"), ("bin", "alignment")
    summary = make([split], tmp_path / "bin", gpt2, outputs=outputs)
    tokenize(path, tmp_path / "pt", config_of(gpt2, outputs=outputs))
    name = names.alignment("gsm8k", "train")
    align(path, tmp_path / "pt", tmp_path / "aligned", AlignConfig(gpt2.path))
    one, other = (
        _without_paths((tmp_path / folder / name).read_text()) for folder in ("bin", "aligned")
    )
    assert one == other
    assert any(row["step_labels"] for row in one)
    assert summary.files[name].rows == 30


def _without_paths(text: str) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in text.splitlines()]
    return [{key: row[key] for key in row if key != "shard_path"} for row in rows]

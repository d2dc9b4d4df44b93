"""Token shards of one split: golden bytes, ranks, resume, and what is refused.

Datasets of any tokenizer: ids, forms, index and manifest, by ranks, and what is refused.
"""

import hashlib
import json
import pickle
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.layout import PARTS
from gristmill.publish.build import InputChanged, Slot
from gristmill.publish.publish import RankBuilt, build_rank, publish
from gristmill.reasoning import ShardReader
from gristmill.reasoning.builders import shard_part
from gristmill.reasoning.builders import shards as module
from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.shards import (
    DatasetRanks,
    Split,
    SplitRanks,
    TokenizeSummary,
    dataset_form,
    tokenize,
    tokenize_dataset,
)
from gristmill.reasoning.config import AlignConfig, TokenizeConfig, TokensConfig
from gristmill.reasoning.format import id_files, index, names, pt_file
from gristmill.reasoning.format.shards import CONTRACT, EOS, Meta, metas, read_manifest, read_meta
from gristmill.reasoning.laws.quality import token_steps
from gristmill.reasoning.laws.shards import tokens as token_laws
from gristmill.reasoning.render.text import text_of
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT
from gristmill.vocabularies import encode
from gristmill.vocabularies.encode import Encoded, Encoder, encoder
from gristmill.vocabularies.engine import AUTO, TIKTOKEN
from gristmill.vocabularies.pinned import GPT2, find, read_declared
from gristmill.vocabularies.placing import place_tokenizer
from gristmill.vocabularies.tokenizer import Tokenizer, of_pinned, open_tokenizer
from tests.paths import CHECKOUT
from tests.publish.tiny import snapshot
from tests.reasoning.normalized_files import GSM8K, numbered, write, write_gsm8k
from tests.reasoning.published_root import publish_records, shards_build, worked
from tests.reasoning.supervised_folder import index_line
from tests.tiny_tokenizer import put_tiny


@pytest.fixture(scope="session")
def small(vocabulary_root: Path) -> TokenizeConfig:
    """Sequences of 8 tokens, shards of 3 sequences."""
    vocabulary = find(GPT2, vocabulary_root)
    return TokenizeConfig(vocabulary=vocabulary, seq_len=8, tokens_per_shard=24)


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    return write(tmp_path / "gsm8k" / "train.jsonl", numbered(60))


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a few records, encoded two at a time."""
    monkeypatch.setattr(shard_part, "_GROUP_BYTES", 400)
    monkeypatch.setattr(shard_part, "_BATCH", 2)


def stream(out: Path, rank: int, world_size: int, split: str = "train") -> npt.NDArray[np.int32]:
    """All tokens of a rank, padding included."""
    shards = [meta for meta in metas(out, "gsm8k", split) if meta.shard_index % world_size == rank]
    assert [meta.shard_index // world_size for meta in shards] == list(range(len(shards)))
    return np.concatenate([pt_file.mapped(out / meta.path).ravel() for meta in shards])


def expected_tokens(config: TokenizeConfig, records: list[dict[str, Any]]) -> list[int]:
    """The stream of some records by tiktoken, padded."""
    encode = encoder(GPT2, config.vocabulary, TIKTOKEN)
    tokens: list[int] = []
    for text in filter(None, map(text_of, records)):
        tokens += [*np.frombuffer(encode.encode([text]).ids[0], np.int32).tolist(), EOS]
    return tokens + [EOS] * (-len(tokens) % config.seq_len)


@pytest.mark.real
@pytest.mark.parametrize("engine", [AUTO, TIKTOKEN])
def test_gsm8k_gives_the_golden_shard(tmp_path, small, engine):
    if not GSM8K.exists():
        pytest.skip(f"there is no {GSM8K}")
    source = write_gsm8k(tmp_path / "gsm8k" / "test.jsonl")
    assert (
        hashlib.sha256(source.read_bytes()).hexdigest()
        == "4cef33a7737174083116224c95e3502b8e3a9a5fe85cb3c545f8a48cc22ab1f9"
    )
    config = TokenizeConfig(vocabulary=small.vocabulary, engine=engine)

    summary = tokenize(source, tmp_path / "out", config)

    path = tmp_path / "out" / "gsm8k" / "test" / "shard_00000.pt"
    meta = read_meta(path.with_name("shard_00000.meta.json"))
    assert {name: getattr(meta, name) for name in CONTRACT} == {
        "dataset": "gsm8k",
        "split": "test",
        "seq_len": 2048,
        "num_sequences": 104,
        "token_count": 212_992,
        "shard_index": 0,
        "path": "gsm8k/test/shard_00000.pt",
        "sha256": "2685f162625baa0e1db98c4831100a1585410bd4d836aaafd093d192a2564945",
    }
    assert (
        hashlib.sha256(path.read_bytes()).hexdigest()
        == meta.file_sha256
        == "1d33ff2ef6eeee47ce03e40b60f61815e4267537faf1d2438dfbaeef70336d10"
    )
    assert path.stat().st_size == 853_573
    assert (summary.text_tokens, summary.eos_tokens, summary.pad_tokens) == (210_519, 1_319, 1_154)
    assert (meta.text_tokens, meta.eos_tokens, meta.pad_tokens) == (210_519, 1_319, 1_154)
    assert (summary.examples, summary.shards, summary.sequences) == (1_319, 1, 104)
    rows = list(index.objects(path.with_name("index.jsonl")))
    lengths = [row["num_tokens"] for row in rows]
    assert (len(rows), min(lengths), max(lengths)) == (1_319, 62, 405)
    assert sum(len(row["spans"]) > 1 for row in rows) == 103


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.usefixtures("small_groups")
def test_record_k_is_of_rank_k_modulo_the_world_size(tmp_path, small, jsonl, world_size):
    config = replace(small, world_size=world_size)

    tokenize(jsonl, tmp_path / "out", config)

    records = numbered(60)
    for rank in range(world_size):
        expected = expected_tokens(config, records[rank::world_size])
        assert stream(tmp_path / "out", rank, world_size).tolist() == expected
    ids = [row["example_id"] for row in index.objects(tmp_path / "out/gsm8k/train/index.jsonl")]
    assert ids == [f"gsm8k_train_{k:06d}" for k in range(60) if text_of(records[k])]


def test_summary_counts_the_records(tmp_path, small):
    records = [
        {"question": "A <|endoftext|><|endoftext|>?", "cot": "because", "answer": "b"},
        {"question": " ", "answer": "\n", "cot": " "},
        {"question": "Straße?", "cot": " ", "answer": ""},
    ]
    source = write(tmp_path / "gsm8k" / "train.jsonl", records)
    summary = tokenize(source, tmp_path / "out", small)
    assert (summary.examples, summary.skipped_empty) == (2, 1)
    assert summary.with_cot == 1
    assert summary.control_texts == 2
    assert summary.fast_texts + summary.tiktoken_texts == 2
    assert stream(tmp_path / "out", 0, 1).tolist() == expected_tokens(small, records)
    assert np.count_nonzero(stream(tmp_path / "out", 0, 1)[: -summary.pad_tokens] == EOS) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("small_groups")
def test_workers_stores_and_groups_change_no_byte(tmp_path, small, jsonl, monkeypatch, request):
    config = replace(small, world_size=2, safetensors=True)
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()

    tokenize(jsonl, tmp_path / "one", config)
    tokenize(jsonl, tmp_path / "kept", config, store)
    tokenize(jsonl, tmp_path / "two", replace(config, workers=2))
    request.getfixturevalue("worker_threads")
    tokenize(jsonl, tmp_path / "four", replace(config, workers=4))
    tokenize(jsonl, tmp_path / "tiktoken", replace(config, engine=TIKTOKEN))
    monkeypatch.setattr(shard_part, "_GROUP_BYTES", 1 << 20)
    tokenize(jsonl, tmp_path / "whole", config)

    expected = snapshot(tmp_path / "one")
    assert len(expected) > 20
    for name in ("kept", "two", "four", "tiktoken", "whole"):
        assert snapshot(tmp_path / name) == expected


@pytest.mark.usefixtures("small_groups")
def test_finished_parts_are_adopted_and_others_made(tmp_path, small, jsonl):
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    tokenize(jsonl, tmp_path / "fresh", small, store)
    parts = sorted(store.folder.glob("*.part"))
    assert len(parts) > 5
    times = {path: path.stat().st_mtime_ns for path in parts}
    parts[1].write_bytes(b"damaged")
    parts[2].with_suffix(".json").unlink()

    tokenize(jsonl, tmp_path / "again", small, store)

    assert snapshot(tmp_path / "again") == snapshot(tmp_path / "fresh")
    remade = [path for path in parts if path.stat().st_mtime_ns != times[path]]
    assert remade == parts[1:3]


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("records", [[], [{}], [{"question": " "}] * 4])
def test_a_file_without_texts_has_no_shard(tmp_path, small, records, world_size):
    source = write(tmp_path / "gsm8k" / "train.jsonl", records)
    summary = tokenize(source, tmp_path / "out", replace(small, world_size=world_size))
    assert snapshot(tmp_path / "out") == {"gsm8k/train/index.jsonl": b""}
    assert (summary.shards, summary.skipped_empty) == (0, len(records))


def test_a_full_last_sequence_gets_no_padding(tmp_path, small):
    record = {"question": "one two three four five six seven"}
    assert len(expected_tokens(small, [record])) == 8
    source = write(tmp_path / "gsm8k" / "train.jsonl", [record] * 3)
    summary = tokenize(source, tmp_path / "out", small)
    assert (summary.pad_tokens, summary.sequences, summary.shards) == (0, 3, 1)


def test_blank_lines_are_no_records(tmp_path, small):
    source = write(tmp_path / "a" / "gsm8k" / "train.jsonl", numbered(9))
    lines = source.read_bytes().splitlines(keepends=True)
    blank = tmp_path / "b" / "gsm8k" / "train.jsonl"
    blank.parent.mkdir(parents=True)
    blank.write_bytes(b"\n \t\n" + b"\r\n\n".join(line.rstrip() for line in lines))
    config = replace(small, world_size=2)
    tokenize(source, tmp_path / "one", config)
    tokenize(blank, tmp_path / "two", config)
    one, two = (snapshot(tmp_path / name) for name in ("one", "two"))
    assert one["gsm8k/train/index.jsonl"] == two["gsm8k/train/index.jsonl"]
    assert one["gsm8k/train/shard_00001.pt"] == two["gsm8k/train/shard_00001.pt"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"{", "is no JSON"),
        (b'"text"', "is no JSON object"),
        (b'{"question": ["a"]}', "question: must be text or null"),
        (b'{"question": "a", "cot": 5}', "cot: must be text or null"),
        (b'{"question": "\\ud800"}', "is no JSON"),
        (b'{"question": "a' + b" " * 100_001 + b'b"}', "cannot be encoded: more than 100000"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path, small, line, rule):
    source = write(tmp_path / "gsm8k" / "train.jsonl", numbered(5))
    source.write_bytes(source.read_bytes() + b"\n" + line + b"\n")
    with pytest.raises(BadInput, match=re.escape(f"train.jsonl:7: {rule}")):
        tokenize(source, tmp_path / "out", replace(small, world_size=2))


def test_another_vocabulary_is_refused_before_anything_is_written(tmp_path, small, jsonl):
    (tmp_path / "ranks").write_bytes(b"IQ== 0\n")
    with pytest.raises(BadInput, match=r"is not r50k_base\.tiktoken"):
        tokenize(jsonl, tmp_path / "out", replace(small, vocabulary=tmp_path / "ranks"))
    assert not (tmp_path / "out").exists()


def line_of(row: Mapping[str, Any]) -> bytes:
    extras = row.get("extras", {})
    return index_line([value for name, value in row.items() if name != "extras"], extras)


def test_the_index_repeats_the_selectors_of_a_corpus(tmp_path, small):
    records = [
        {"question": "a", "dataset": 'b "ß"\n', "source": "c"},
        {"question": "d", "dataset": None, "source": ""},
        {},
        {"question": "e", "dataset": 7, "source": 1e100, "difficulty": "hard"},
    ]
    source = write(tmp_path / "cot_collection" / "train.jsonl", records)
    tokenize(source, tmp_path / "out", small)
    path = tmp_path / "out" / "cot_collection" / "train" / "index.jsonl"
    rows = list(index.objects(path))
    assert [row.get("extras", {}) for row in rows] == [
        {"dataset": 'b "ß"\n', "source": "c"},
        {},
        {"dataset": 7, "source": 1e100},
    ]
    assert path.read_bytes() == b"".join(map(line_of, rows))


def test_the_index_has_the_lines_of_the_format_and_names_corpus_and_split(tmp_path, small, jsonl):
    tokenize(jsonl, tmp_path / "out", replace(small, path_prefix='data "sets"'))
    path = tmp_path / "out" / names.split_index("gsm8k", "train")
    rows = list(index.objects(path))
    assert path.read_bytes() == b"".join(map(line_of, rows))
    assert rows[0]["shard_path"] == 'data "sets"/tokenized/gpt2/gsm8k/train/shard_00000.pt'
    (tmp_path := tmp_path / "next").mkdir()
    tokenize(jsonl, tmp_path / "out", small, corpus="wiqa", split="test")
    found = metas(tmp_path / "out", "wiqa", "test")
    assert isinstance(found[0], Meta)
    assert found[0].first_example == "wiqa_test_000000"
    assert found[0].source_files[0]["path"] == "reasoning/raw/wiqa/test.jsonl"


def test_a_twin_holds_the_same_tensor(tmp_path, small, jsonl):
    summary = tokenize(jsonl, tmp_path / "out", replace(small, safetensors=True))
    for meta in metas(tmp_path / "out", "gsm8k", "train"):
        twin = meta.path.removesuffix(".pt") + ".safetensors"
        octets = (tmp_path / "out" / twin).read_bytes()
        size = int.from_bytes(octets[:8], "little")
        header = json.loads(octets[8 : 8 + size])
        assert list(header) == ["input_ids"]
        assert header["input_ids"] == {
            "dtype": "I32",
            "shape": [meta.num_sequences, meta.seq_len],
            "data_offsets": [0, 4 * meta.token_count],
        }
        assert size % 8 == 0
        assert octets[8 + size :] == pt_file.mapped(tmp_path / "out" / meta.path).tobytes()
        assert summary.files[twin].sha256 == hashlib.sha256(octets).hexdigest()


class WrongEncoder:
    """gigatoken that is wrong about one text."""

    why_reference_alone = None

    def __init__(self, right: Encoder, wrong: str) -> None:
        self._right, self._wrong = right, wrong

    def encode(self, texts: list[str]) -> Encoded:
        ids = [
            memoryview(np.array([7], dtype=np.int32)) if text == self._wrong else right
            for text, right in zip(texts, self._right.encode(texts).ids, strict=True)
        ]
        return Encoded(ids, frozenset())


@pytest.mark.parametrize(("record", "sample"), [(0, []), (20, [20]), (20, [])])
def test_engines_that_differ_stop_the_build(tmp_path, small, jsonl, monkeypatch, record, sample):
    wrong = text_of(numbered(60)[record])
    right = encoder(GPT2, small.vocabulary, TIKTOKEN)
    engines = {AUTO: WrongEncoder(right, wrong), TIKTOKEN: right}
    monkeypatch.setattr(shard_part, "encoder_of", lambda *args: engines[args[1]])
    monkeypatch.setattr(
        "gristmill.reasoning.builders.shard_part.sampled",
        lambda *_: np.array(sample, dtype=np.int64),
    )
    if record and not sample:
        assert tokenize(jsonl, tmp_path / "out", small).compared_texts == 0
        return
    with pytest.raises(encode.EnginesDiffer, match=f"record {record}: the engines differ"):
        tokenize(jsonl, tmp_path / "out", small)


def test_parts_of_an_engine_that_was_turned_off_are_not_adopted(tmp_path, small, jsonl):
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    tokenize(jsonl, tmp_path / "fast", small, store)
    before = set(store.folder.glob("*.part"))
    tokenize(jsonl, tmp_path / "slow", replace(small, engine=TIKTOKEN), store)
    assert len(set(store.folder.glob("*.part")) - before) == len(before)


RANKS = 3


@pytest.fixture
def root(tmp_path: Path, config: TokenizeConfig, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with a normalised split, in groups of a few records."""
    monkeypatch.setattr(shard_part, "_GROUP_BYTES", 400)
    root = tmp_path / "root"
    publish_records(root, config.vocabulary, numbered(60))
    return root


@pytest.fixture
def config(vocabulary_root: Path) -> TokenizeConfig:
    vocabulary = find(GPT2, vocabulary_root)
    return TokenizeConfig(vocabulary, seq_len=8, tokens_per_shard=24, world_size=RANKS)


def ranks_of(root: Path, config: TokenizeConfig) -> SplitRanks:
    return SplitRanks(root / names.NORMALIZED / names.normalized("gsm8k", "train"), config)


def run(root: Path, config: TokenizeConfig, rank: int) -> RankBuilt:
    return build_rank(shards_build(root, config), ranks_of(root, config), rank)


def published(root: Path) -> dict[str, bytes]:
    return snapshot(root / names.TOKENIZED / "gsm8k")


@pytest.fixture
def expected(root: Path, config: TokenizeConfig) -> dict[str, bytes]:
    """The files that one build publishes, which are taken away again."""
    publish(shards_build(root, config))
    files = published(root)
    assert len(files) > 20
    shutil.rmtree(root / "reasoning" / "tokenized")
    return files


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ranks of the parts that were made, in order."""
    ranks: list[int] = []
    make = shard_part.make_part

    def noted(task: shard_part.Task, path: Path) -> dict[str, Any]:
        ranks.append(task.rank)
        return make(task, path)

    monkeypatch.setattr(module, "make_part", noted)
    monkeypatch.setattr("gristmill.reasoning.builders.shards.make_part", noted)
    return ranks


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_last_rank_publishes_what_one_build_would(root, config, expected, made, order):
    left = set(order)
    for rank in order:
        built = run(root, config, rank)
        left.remove(rank)
        assert list(built.missing) == sorted(left)
        assert built.made > 3
        assert (built.published is None) == bool(left)
    assert made == [rank for rank in order for _ in range(len(made) // RANKS)]
    assert published(root) == expected
    assert not Slot.of(shards_build(root, config)).work.exists()

    again = run(root, config, 1)
    assert again.published is not None and not again.published.rebuilt
    assert again.made == 0


def test_a_rank_that_runs_again_makes_only_what_is_missing(root, config, made, monkeypatch):
    noted = module.make_part

    def killed(task: shard_part.Task, path: Path) -> dict[str, Any]:
        if len(made) == 2:
            raise KeyboardInterrupt
        return noted(task, path)

    with monkeypatch.context() as patched:
        patched.setattr(module, "make_part", killed)
        with pytest.raises(KeyboardInterrupt):
            run(root, config, 0)
    first = len(made)
    built = run(root, config, 0)
    assert len(made) == first + built.made
    assert built.made == len(ranks_of(root, config).names(0)) - first
    assert run(root, config, 0).made == 0


def test_a_build_without_ranks_adopts_their_parts(root, config, made):
    run(root, config, 0)
    run(root, config, 2)
    made.clear()
    publish(shards_build(root, config))
    assert set(made) == {1}


def test_a_damaged_part_is_made_again_by_the_publisher(root, config, expected, made):
    run(root, config, 0)
    build = shards_build(root, config)
    folder = Slot.of(build).work / PARTS / build.parts_key
    sorted(folder.glob("*.part"))[0].write_bytes(b"damaged")
    run(root, config, 1)
    made.clear()
    assert run(root, config, 2).published is not None
    assert 0 in made
    assert published(root) == expected


def test_ranks_at_once_do_not_collide(root, config, expected):
    with ThreadPoolExecutor(RANKS) as threads:
        done = [each.published for each in threads.map(partial(run, root, config), range(RANKS))]
    assert sum(each is not None and each.rebuilt for each in done) == 1
    assert published(root) == expected


def test_parts_of_an_input_that_changed_are_forgotten(root, config, monkeypatch):
    make = SplitRanks.make

    def changed(self: SplitRanks, rank: int, *rest: Any) -> None:
        make(self, rank, *rest)
        path = root / names.NORMALIZED / names.normalized("gsm8k", "train")
        path.write_bytes(path.read_bytes() + b"\n")

    monkeypatch.setattr(SplitRanks, "make", changed)
    build = shards_build(root, config)
    with pytest.raises(InputChanged):
        run(root, config, 0)
    assert not list((Slot.of(build).work / PARTS / build.parts_key).iterdir())


@pytest.mark.parametrize("rank", [-1, RANKS])
def test_a_rank_that_is_not_there_is_refused(root, config, rank):
    with pytest.raises(ValueError, match="must be from 0 to 2"):
        run(root, config, rank)


def test_workers_make_the_same_parts(root, config):
    names_of = ranks_of(root, config).names(0)
    assert len(set(names_of)) == len(names_of) > 3
    assert names_of == ranks_of(root, replace(config, workers=2)).names(0)
    assert not set(names_of) & set(ranks_of(root, config).names(1))


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
    laws = (token_laws, token_steps)
    return [each for law in laws for each in law(subject)]


@pytest.mark.parametrize("outputs", [("bin",), ("safetensors", "bin")])
def test_the_ids_are_those_of_the_tokenizer_and_the_laws_hold(tmp_path, splits, tokenizer, outputs):
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
        first = next(index.objects(out / names.split_index(split.corpus, split.split)))
        assert first["shard_path"] == f"reasoning/tokens/mine/{listed[0].path}"
        assert listed[0].path.endswith(outputs[0])
    listed = read_manifest(out)
    assert {(meta.tokenizer, meta.dtype, meta.eod, meta.ids) for meta in listed} == {
        ("tiny", "uint16", 264, 265)
    }
    batch = next(ShardReader(out).batches(999))
    assert batch["input_ids"].dtype == np.int32
    assert len(batch["input_ids"]) == sum(meta.num_sequences for meta in listed)


def test_ids_that_need_more_than_two_bytes_are_int32(tmp_path, splits, tokenizer):
    make(splits, tmp_path / "out", replace(tokenizer, size=70_000))
    (name,) = {meta.dtype for meta in read_manifest(tmp_path / "out")}
    assert name == "int32"


def test_ranks_that_ran_one_by_one_make_the_same_files(tmp_path, splits, tokenizer):
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
def test_a_planted_fault_breaks_a_law(tmp_path, splits, tokenizer, plant, law):
    out = tmp_path / "out"
    write(splits[0].jsonl, worked(40))
    make(splits, out, tokenizer, outputs=("bin", "alignment"))
    assert broken(out, splits, tokenizer) == []
    plant(out)
    assert law in {found.law for found in broken(out, splits, tokenizer)}


def test_another_file_of_the_tokenizer_is_refused_at_once(tmp_path, splits, tokenizer):
    with pytest.raises(BadInput, match="is expected"):
        make(splits, tmp_path / "out", replace(tokenizer, sha256="0" * 64))
    assert not (tmp_path / "out").exists()


def test_a_build_that_is_killed_continues_with_its_parts(tmp_path, splits, tokenizer):
    config = config_of(tokenizer)
    form = dataset_form(config, tokenizer, "mine")
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    script = (
        "import os, pickle, signal, sys\n"
        "from gristmill.reasoning.builders import shards\n"
        "splits, out, config, form, store = pickle.load(sys.stdin.buffer)\n"
        "shards.Joiner.join = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "shards.tokenize_dataset(splits, out, config, form, store)\n"
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


def test_gpt2_shards_and_a_dataset_of_gpt2_have_the_same_ids(tmp_path, splits, vocabulary_root):
    gpt2 = of_pinned(GPT2, find(GPT2, vocabulary_root))
    make(splits[:1], tmp_path / "bin", gpt2)
    tokenize(splits[0].jsonl, tmp_path / "pt", config_of(gpt2))
    one, other = (
        [id_files.of_meta(tmp_path / name, meta) for meta in metas(tmp_path / name, *splits[0][1:])]
        for name in ("bin", "pt")
    )
    assert [ids.dtype for ids in (one[0], other[0])] == [np.uint16, np.int32]
    assert np.array_equal(np.concatenate(one), np.concatenate(other))


def test_a_dataset_of_gpt2_has_the_alignment_of_its_shards(tmp_path, vocabulary_root):
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

"""Which corpora are tokenised by their terms, and which day has a report.

Published spans and exports are shown and traced to raw rows; what has nothing is not built.
"""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from gristmill.asset import Asset, Wanted, declared
from gristmill.browse.opening import Files
from gristmill.cli import main
from gristmill.contract import BadInput, GristmillError, NothingToBuild, Violation
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw import rows as read_rows
from gristmill.corpora.raw.forgotten import add
from gristmill.corpora.records import records
from gristmill.corpora.split_file import files
from gristmill.data_root import DataRoot
from gristmill.provenance import record_path, verify
from gristmill.provenance.list_artifacts import list_artifacts
from gristmill.publish.publish import publish
from gristmill.reasoning import ShardReader, builds
from gristmill.reasoning.builders import normalize
from gristmill.reasoning.builders.forget import tombstones_of
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.builds import report_build
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.family import CATALOG
from gristmill.reasoning.format import names
from gristmill.reasoning.format.align import rows
from gristmill.reasoning.format.index import mapped
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.format.shards import metas
from gristmill.reasoning.laws import shards as shard_laws
from gristmill.reasoning.laws import texts
from gristmill.reasoning.raw import refuse_terms
from gristmill.reasoning.read.exported import splits_of
from gristmill.reasoning.read.shard_files import verify_shards
from gristmill.reasoning.read.trace import example_origins, record_at, record_origins
from gristmill.reasoning.render.annotations import KEYS, rows_of
from gristmill.reasoning.render.text import text_of
from gristmill.reasoning.show import tables
from gristmill.vocabularies.pinned import FACTS, GPT2, find
from tests.paths import CHECKOUT
from tests.reasoning.exported_root import broken, build_dataset
from tests.reasoning.published_root import (
    SEQ_LEN,
    build_of,
    built,
    publish_root,
    put_vocabulary,
    worked,
)
from tests.report_day import working_on
from tests.tiny_tokenizer import put_recipe


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=lambda corpus: str(corpus.name))
def test_a_corpus_is_tokenised_unless_its_terms_forbid_training(corpus):
    refuse_terms(corpus, [corpus.name])
    if corpus.name != "reveal":
        refuse_terms(corpus, [])
        return
    for allow in ([], ["gsm8k"]):
        with pytest.raises(NothingToBuild, match=r"CC-BY-ND-4\.0.*forbid.*allow = \[\"reveal\"\]"):
            refuse_terms(corpus, allow)


@pytest.mark.parametrize(
    ("days", "why"), [(-1, "only 2026-11-28 can be built"), (1, "only 2026-11-28"), (0, "no split")]
)
def test_only_the_current_day_has_a_report_and_needs_a_split(tmp_path, days, why):
    report = next(kind for kind in CATALOG.kinds if kind.asset == "reasoning/qc_report")
    assert isinstance(report, Asset)
    day = (date(2026, 11, 28) + timedelta(days=days)).isoformat()
    with working_on("2026-11-28"), pytest.raises(NothingToBuild, match=why):
        report_build(Wanted(report, DataRoot(tmp_path), day))


@pytest.mark.parametrize(
    ("record", "is_wanted"),
    [
        ("tokenizer/provenance/gpt2.json", True),
        (f"{names.TOKENIZED}/provenance/gsm8k__test.json", True),
        (f"{names.NORMALIZED}/provenance/gsm8k__test.json", False),
    ],
)
def test_a_report_needs_the_vocabulary_where_it_is_or_has_shards(tmp_path, record, is_wanted):
    (tmp_path / record).parent.mkdir(parents=True)
    (tmp_path / record).touch()
    assert builds._vocabulary_is_wanted(DataRoot(tmp_path)) is is_wanted


OWN = """\
schema = 1
name = "own"
steps = { "H:" = "Hypothesis", "C:" = "Constraint" }

[[form]]
question = "q"
cot = "c"
answer = "a"
"""


def test_a_record_is_shown_with_its_annotations_and_traced_to_its_raw_row(tmp_path):
    build_dataset(tmp_path)
    built(tmp_path, "reasoning/spans", "gsm8k__train", tokenizer="tiny")
    built(tmp_path, "reasoning/exports", "mine", formats=("llm.c", "nanochat"))
    folder = tmp_path / "reasoning/spans"
    assert all(tuple(row) == KEYS for row in rows_of(folder / "gsm8k/train.spans.jsonl"))

    def said(*words: object) -> str:
        done = CliRunner().invoke(main, [*map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    shown = said("show", folder, "gsm8k_train_000004")
    assert "ann_text: <<16/2=8>>" in shown
    assert "others that fit" in shown
    traced = said("trace", folder, "gsm8k_train_000004")
    assert "drops/reasoning/gsm8k/train.jsonl" in traced
    assert "<<16/2=8>>" in traced
    exported = tmp_path / "reasoning/exports/mine"
    assert "text: train 4?" in said("show", exported, "4")
    traced = said("trace", exported, "gsm8k_train_000004")
    assert "drops/reasoning/gsm8k/train.jsonl" in traced
    for shard, split in (("00000", "train"), ("00001", "test")):
        traced = said("trace", exported, "4", "--shard", shard)
        assert f"drops/reasoning/gsm8k/{split}.jsonl" in traced
        assert "raw_row: 5\n" in traced


def test_a_split_without_annotations_has_no_spans(tmp_path):
    build_dataset(tmp_path)
    path = tmp_path / "reasoning/raw/gsm8k/train.jsonl"
    path.write_bytes(path.read_bytes().replace(b"<<", b"<").replace(b"test", b"<<1+1"))
    with pytest.raises(NothingToBuild, match="no annotation as <<48/2=24>>"):
        build_of(tmp_path, "reasoning/spans", "gsm8k__train")


@pytest.mark.parametrize("damage", ["missing", "no JSON"])
@pytest.mark.parametrize(
    ("asset", "partition", "chosen"),
    [
        ("reasoning/spans", "gsm8k__train", {"tokenizer": "tiny"}),
        # Other outputs than those that are published.
        ("reasoning/tokens", "mine", {"outputs": ["safetensors"]}),
    ],
)
def test_a_damaged_split_is_refused_with_the_cure(tmp_path, asset, partition, chosen, damage):
    build_dataset(tmp_path)
    path = tmp_path / "reasoning/raw/gsm8k/train.jsonl"
    path.unlink() if damage == "missing" else path.write_bytes(b'{"a": <<\n')
    with pytest.raises(GristmillError, match="materialize reasoning/normalized --partition gsm8k"):
        built(tmp_path, asset, partition, **chosen)


@pytest.mark.parametrize("asset", ["reasoning/spans", "reasoning/exports"])
def test_only_settings_ask_for_an_asset_that_no_command_names(tmp_path, asset):
    lake, made = DataRoot(tmp_path), declared()[asset]
    assert not made.is_asked(lake, "gsm8k__train")
    (tmp_path / "gristmill.toml").write_text(
        '[reasoning.spans]\ntokenizer = "gpt2"\n[reasoning.exports]\nformats = ["llm.c"]\n'
    )
    assert made.is_asked(lake, "gsm8k__train")


def _books(root: Path, recipe: str = 'texts = "{text}"\n') -> None:
    """Put a drop of plain text."""
    drop = root / "drops/reasoning/books"
    drop.mkdir(parents=True, exist_ok=True)
    (drop / "corpus.toml").write_text(f'schema = 1\nname = "books"\n{recipe}')
    rows = ({"text": f"Once upon a time {n}.", "end": "So."} for n in range(40))
    (drop / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_plain_text_has_no_alignment_and_one_of_before_stays(tmp_path, vocabulary_root):
    lake, made = DataRoot(tmp_path), declared()["reasoning/alignment"]
    _books(tmp_path)
    assert not made.is_asked(lake, "books__train") and made.is_asked(lake, "gsm8k__train")
    put_vocabulary(tmp_path, find(GPT2, vocabulary_root))
    for asset in ("reasoning/normalized", "reasoning/gpt2_shards"):
        built(tmp_path, asset, "books__train")
    with pytest.raises(NothingToBuild, match=r"without steps\Z"):
        build_of(tmp_path, made.asset, "books__train")
    # As a version before built it.
    before = Wanted(made, lake, "books__train", is_comparison=True)
    publish(made.build(before))
    cure = f"steps: gristmill remove {tmp_path / names.ALIGNMENT} --partition books__train$"
    with pytest.raises(NothingToBuild, match=cure):
        build_of(tmp_path, made.asset, "books__train")
    assert verify(tmp_path) == []
    (listed,) = list_artifacts(tmp_path, made.asset)
    assert (listed.state, listed.rows) == ("current", 40)
    done = CliRunner().invoke(main, ["verify", "--rebuild", str(tmp_path / names.ALIGNMENT)])
    assert done.exit_code == 0, done.output
    # The file of the drop counts, else what was built by it.
    _books(tmp_path, 'question = "text"\nanswer = "end"\n')
    assert made.is_asked(lake, "books__train")
    (tmp_path / "drops/reasoning/books/corpus.toml").write_text("texts =")
    assert not made.is_asked(lake, "books__train")
    shutil.rmtree(tmp_path / "drops/reasoning/books")
    assert not made.is_asked(lake, "books__train")


def test_plain_text_is_read_and_staged_beside_steps(tmp_path, vocabulary_root):
    _books(tmp_path)
    publish_root(tmp_path, find(GPT2, vocabulary_root), worked(9), seq_len=SEQ_LEN)
    built(tmp_path, "reasoning/alignment", "gsm8k__train")
    for asset in ("reasoning/normalized", "reasoning/gpt2_shards"):
        chosen = {"seq_len": SEQ_LEN} if asset.endswith("shards") else {}
        built(tmp_path, asset, "books__train", **chosen)
    built(tmp_path, "reasoning/manifest", names.MANIFEST_RECORD)
    shards, aligned = tmp_path / names.TOKENIZED, tmp_path / names.ALIGNMENT
    job = tmp_path / "job"
    for corpora, most in ((["books"], 0), ([], 1)):
        words = ["stage", "job", "--rank", "0", "--world-size", "1", "--to", tmp_path, "--steps"]
        words += [word for corpus in corpora for word in ("--corpus", corpus)]
        done = CliRunner().invoke(
            main, [*map(str, words)], env={"GRISTMILL_DATA": str(tmp_path)}, catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
        for root, steps in ((shards, aligned), (job / "shards", job / "alignment")):
            reader = ShardReader(root, corpora=corpora, steps=steps)
            assert min(next(reader.batches(99))["step_id"].max(), 1) == most
        shutil.rmtree(job)
    # Examples of gsm8k have steps without a chain of thought.
    (aligned / names.alignment("gsm8k", "train")).unlink()
    with pytest.raises(BadInput, match=r"gsm8k/train\.align\.jsonl: is missing"):
        ShardReader(shards, steps=aligned)
    path = record_path(shards, "books__train", shared=True)
    path.unlink()
    with pytest.raises(BadInput, match=r"books/train\.align\.jsonl: is missing"):
        ShardReader(shards, corpora=["books"], steps=aligned)


def test_a_dataset_with_its_alignment_gives_steps_with_the_marks_of_its_corpus(tmp_path):
    build_dataset(tmp_path)
    (tmp_path / "drops/reasoning/own").mkdir()
    (tmp_path / "drops/reasoning/own/corpus.toml").write_text(OWN)
    (tmp_path / "drops/reasoning/own/train.jsonl").write_text(
        '{"q": "1+1?", "c": "H: one and one\\nC: is two", "a": "2"}\n'
    )
    (tmp_path / "drops/reasoning/own/.done").touch()
    built(tmp_path, "reasoning/normalized", "own__train")
    put_recipe(tmp_path, corpora=["own", "gsm8k"], outputs=["bin", "alignment"])
    record = built(tmp_path, "reasoning/tokens", "mine")
    dataset = tmp_path / "reasoning/tokens/mine"
    marks = {"H:": "Hypothesis", "C:": "Constraint"}
    assert json.loads(str(record.config["steps"])) == {"own__train": marks}
    (row,) = rows(dataset / "own/train.align.jsonl")
    assert row.step_labels == ["Hypothesis", "Constraint", "Answer"]
    assert broken(tmp_path, record, shared=False) == []
    batch = next(ShardReader(dataset, steps=dataset).batches(64))
    assert batch["step_id"].max() >= 2
    words = ("--rank", "0", "--world-size", "1", "--to", tmp_path, "--from", dataset, "--steps")
    done = CliRunner().invoke(main, ["stage", "job", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    copied = ShardReader(tmp_path / "job/shards", steps=tmp_path / "job/alignment")
    assert (next(copied.batches(64))["step_id"] == batch["step_id"]).all()


def test_an_alignment_of_another_dataset_or_none_is_refused_with_the_cure(tmp_path):
    build_dataset(tmp_path)
    put_recipe(tmp_path, "two", outputs=["bin", "alignment"], seq_len=32, tokens_per_shard=320)
    built(tmp_path, "reasoning/tokens", "two")
    one, two = (tmp_path / "reasoning/tokens" / name for name in ("mine", "two"))
    with pytest.raises(BadInput, match=r"is of other shards than .*mine"):
        ShardReader(one, steps=two)
    with pytest.raises(BadInput, match=r'write outputs = \["bin", "alignment"\] in the recipe'):
        ShardReader(one, steps=one)
    assert "step_id" in next(ShardReader(two, steps=two).batches(1))


def test_an_alignment_needs_tokens_that_are_the_bytes_of_a_text(tmp_path):
    build_dataset(tmp_path)
    put_recipe(tmp_path, outputs=["bin", "alignment"])
    facts = tmp_path / "tokenizer/tiny" / FACTS
    text = facts.read_text()
    facts.write_text(text.replace('"no_offsets": ""', '"no_offsets": "it adds blanks"'))
    with pytest.raises(BadInput, match='leave "alignment" out of outputs: tiny: it adds blanks'):
        built(tmp_path, "reasoning/tokens", "mine")


RECIPE = """schema = 1
question = "q"
answer = "a"
cot = "c"
"""
OWN_TRAIN = "own__train"
CHAIN = ("reasoning/normalized", "reasoning/gpt2_shards", "reasoning/alignment", "reasoning/spans")


def own_drop(root: Path, recipe: str, rows: int = 90) -> Path:
    """A drop whose rows are of different lengths; some are blank, some have no chain."""
    drop = root / "drops/reasoning/own"
    drop.mkdir(parents=True)
    (drop / "corpus.toml").write_text(recipe)
    lines = [
        {
            "q": f"How many are {n} and {n}? " + "So? " * (n * 7 % 40),
            "a": f"<<{n}+{n}={2 * n}>>{2 * n}",
            "c": f"There are {n}.\n{n} more come." if n % 3 else None,
        }
        for n in range(rows)
    ]
    text = "".join(json.dumps(line) + "\n\n" * (n % 9 == 8) + "\n" for n, line in enumerate(lines))
    (drop / "train.jsonl").write_text(text)
    return drop


def chain(root: Path, recipe: str, vocabulary: Path, workers: int = 1, **of_drop: int) -> Path:
    """Publish every artifact of the drop."""
    own_drop(root, recipe, **of_drop)
    put_vocabulary(root, vocabulary)
    for asset in CHAIN:
        chosen = {"seq_len": SEQ_LEN, "tokens_per_shard": 4 * SEQ_LEN} if "shards" in asset else {}
        built(root, asset, OWN_TRAIN, workers=workers, **chosen)
    for manifest in ("reasoning/raw_manifest", "reasoning/manifest"):
        built(root, manifest, names.MANIFEST_RECORD)
    return root


def outputs_of(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / "reasoning").rglob("*"))
        if path.is_file() and not {"provenance", ".gristmill"} & {*path.parts}
    }


@pytest.fixture(scope="module")
def in_parts(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    root = tmp_path_factory.mktemp("parts")
    return chain(root, RECIPE + "part_bytes = 3000\n", find(GPT2, vocabulary_root))


def own_path(root: Path) -> Path:
    return root / names.NORMALIZED / "own/train.jsonl"


def test_a_split_in_parts_gives_the_files_of_one_that_is_not(in_parts, vocabulary_root, tmp_path):
    root = chain(tmp_path / "whole", RECIPE, find(GPT2, vocabulary_root))
    whole, parted = outputs_of(root), outputs_of(in_parts)
    # The raw manifest alone says that the split is in parts.
    manifests = [json.loads(each.pop("reasoning/raw/manifest.json")) for each in (whole, parted)]
    joined = dict[str, bytes]()
    for name in ("spans/own/train.spans", "tokenized/gpt2/own/train/index", "raw/own/train"):
        parts = sorted(each for each in parted if each.startswith(f"reasoning/{name}/"))
        assert len(parts) > 3
        joined[f"reasoning/{name}.jsonl"] = b"".join(parted.pop(each) for each in parts)
    assert {**parted, **joined} == whole
    (one, several) = (manifest["own"]["files"]["train"] for manifest in manifests)
    listed = several.pop("parts")
    assert [f"reasoning/raw/{each['path']}" for each in listed] == parts
    assert sum(each["rows"] for each in listed) == one["records"]
    assert several | {"sha256": one["sha256"]} == one
    assert verify(in_parts) == verify(root) == []
    assert list(verify_shards(in_parts / names.TOKENIZED)) == []
    assert splits_in(in_parts / names.NORMALIZED, "{split}.jsonl") == [OWN_TRAIN]
    one, other = (
        ShardReader(each / names.TOKENIZED, steps=each / names.ALIGNMENT, documents=True)
        for each in (root, in_parts)
    )
    for batches in zip(one.batches(3), other.batches(3), strict=True):
        assert all((batches[0][name] == batches[1][name]).all() for name in batches[0])
    for record in (0, 40, 89):
        tokens = [each / names.TOKENIZED for each in (root, in_parts)]
        steps = [example_origins(each, OWN_TRAIN, f"own_train_{record:06d}", 3) for each in tokens]
        read = [dict(next(iter(each)).facts()) for each in steps]
        assert read[0] == read[1]
        traced = [dict(facts(each, record)) for each in (root, in_parts)]
        for each in traced:
            del each["normalized_file"], each["line"], each["normalized_sha256"]
        assert traced[0] == traced[1]


def test_rows_of_parts_are_shown_and_exported_as_those_of_one_file(in_parts):
    folder = in_parts / names.NORMALIZED
    every = list(records(own_path(in_parts)))
    several = files(own_path(in_parts))
    found = tables("reasoning/normalized", folder, Files(folder))
    assert [each.name for each in found] == [f"{OWN_TRAIN}__{each.stem}" for each in several]
    at = 0
    for table in found:
        rows_ = table.open().read(0, 100, 60.0)
        for row in rows_:
            assert row.values["question"] == every[at][1]["question"]
            assert table.sample is not None and table.named is not None
            assert table.sample(row)[0] == str(at)
            assert table.named(f"own_train_{at:06d}") == row.number
            at += 1
        assert table.named("own_train_000000") == (0 if table is found[0] else ())
    assert at == len(every)
    for number in (0, 50, 89):
        said = CliRunner().invoke(main, ["show", str(folder), f"own_train_{number:06d}"]).output
        assert f"How many are {number} and" in said
    splits = list(splits_of("reasoning/normalized", folder, OWN_TRAIN, in_parts))
    assert [folder / each.file for each in splits] == several
    assert [row for each in splits for batch in each.batches() for row in batch.to_pylist()] == [
        record for _, record in every
    ]
    texts_ = [text for each in splits for some in each.texts() for text in some.to_pylist()]
    assert texts_ == [text_of(record) for _, record in every]


def facts(root: Path, record: int) -> Iterator[tuple[str, object]]:
    for step in record_origins(root / names.NORMALIZED, OWN_TRAIN, record):
        yield from step.facts().items()


def test_a_build_in_parts_is_resumed_with_the_same_bytes(in_parts, tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_PARTS_SECONDS", "0")
    monkeypatch.setattr(read_rows, "_PIECE_BYTES", 500)
    monkeypatch.setattr(read_rows, "_LEAST_BYTES", 1)
    own_drop(tmp_path, RECIPE + "part_bytes = 3000\n")
    made = 0

    def killed(*given: Any) -> Any:
        nonlocal made
        made += 1
        if made == 5:
            raise KeyboardInterrupt
        return read_piece(*given)

    read_piece = normalize._read_piece
    monkeypatch.setattr(normalize, "_read_piece", killed)
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, CHAIN[0], OWN_TRAIN)
    done = publish(build_of(tmp_path, CHAIN[0], OWN_TRAIN))
    assert any("4 of" in note and "taken over" in note for note in done.notes)
    expected = {name: data for name, data in outputs_of(in_parts).items() if "/raw/own" in name}
    assert {n: d for n, d in outputs_of(tmp_path).items() if "/raw/own" in n} == expected


KILLED = """
import os, signal, sys
from pathlib import Path
from gristmill.corpora.raw import rows
from gristmill.corpora.split_file import SplitWriter
from tests.reasoning.test_builds import CHAIN, OWN_TRAIN, built

rows._PIECE_BYTES, rows._LEAST_BYTES, left, write = 500, 1, int(sys.argv[2]), SplitWriter.write

def killed(self, data):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, data)

SplitWriter.write = killed
built(Path(sys.argv[1]), CHAIN[0], OWN_TRAIN, workers=int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("writes", "workers"), [(2, 1), (9, 1), (20, 1), (9, 2)])
def test_a_build_in_parts_that_was_killed_goes_on(in_parts, tmp_path, monkeypatch, writes, workers):
    monkeypatch.setenv("GRISTMILL_PARTS_SECONDS", "0")
    own_drop(tmp_path, RECIPE + "part_bytes = 3000\n")
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(writes), str(workers)]
    assert subprocess.run(command, cwd=CHECKOUT, check=False).returncode == -signal.SIGKILL
    monkeypatch.setattr(read_rows, "_PIECE_BYTES", 500)
    monkeypatch.setattr(read_rows, "_LEAST_BYTES", 1)
    done = publish(build_of(tmp_path, CHAIN[0], OWN_TRAIN))
    assert any("taken over" in note for note in done.notes)
    expected = {name: data for name, data in outputs_of(in_parts).items() if "/raw/own" in name}
    assert {n: d for n, d in outputs_of(tmp_path).items() if "/raw/own" in n} == expected


def test_a_recipe_that_asks_for_parts_later_leaves_no_other_file(tmp_path):
    drop = own_drop(tmp_path, RECIPE)
    for least, count in ((None, 1), (3000, 6), (8000, 3), (None, 1)):
        more = f"part_bytes = {least}\n" if least else ""
        (drop / "corpus.toml").write_text(RECIPE + more)
        built(tmp_path, CHAIN[0], OWN_TRAIN)
        assert sorted(own_path(tmp_path).parent.rglob("*.jsonl")) == files(own_path(tmp_path))
        assert len(files(own_path(tmp_path))) == count and verify(tmp_path) == []


@pytest.mark.slow
def test_two_workers_make_the_same_parts(in_parts, vocabulary_root, tmp_path, monkeypatch):
    monkeypatch.setattr(read_rows, "_PIECE_BYTES", 500)
    monkeypatch.setattr(read_rows, "_LEAST_BYTES", 1)
    monkeypatch.setattr(texts, "_RANGE_BYTES", 700)
    monkeypatch.setattr(texts, "_BYTES_ALONE", 1)
    monkeypatch.setattr(shard_laws, "_BYTES_ALONE", 1)
    monkeypatch.setattr(shard_laws, "_RANGE_BYTES", 700)
    chain(tmp_path, RECIPE + "part_bytes = 3000\n", find(GPT2, vocabulary_root), workers=2)
    whole, parted = outputs_of(tmp_path), outputs_of(in_parts)
    for each in (whole, parted):
        del each["reasoning/raw/manifest.json"]  # it has a time
    assert whole == parted


@pytest.mark.parametrize("damage", ["changed", "gone", "first gone", "last gone"])
def test_a_damaged_part_is_found_and_named(in_parts, tmp_path, damage):
    shutil.copytree(in_parts, tmp_path / "root")
    root, folder = tmp_path / "root", tmp_path / "root" / names.NORMALIZED
    several = files(own_path(root))
    part = several[{"first gone": 0, "last gone": -1}.get(damage, 1)]
    octets = part.read_bytes()
    part.unlink()
    if damage == "changed":
        part.write_bytes(b"[" + octets[1:])
    said = str(verify(root))
    assert part.name in said
    if damage == "changed":
        with pytest.raises(BadInput, match=rf"{part.name}:1: .*build the partition again"):
            list(records(own_path(root)))
        assert f"own/train/{part.name}:1" in str([*texts.normalized_laws(folder, OWN_TRAIN)])
        with pytest.raises(BadInput, match=rf"{part.name}:1: is no"):
            tokenize(own_path(root), tmp_path / "out", TokenizeConfig(find(GPT2, root)))
    else:
        projected = partial(splits_of, "reasoning/normalized", folder, OWN_TRAIN, root)
        for read in (partial(records, own_path(root)), partial(facts, root, 40), projected):
            with pytest.raises(BadInput, match=rf"{part.name}: is missing.*build the partition"):
                list(read())
        assert splits_in(folder, "{split}.jsonl") == [OWN_TRAIN]
        assert [each.law for each in texts.normalized_laws(folder)] == ["readable"]
    publish(build_of(root, CHAIN[0], OWN_TRAIN), rebuild=True)
    assert part.read_bytes() == octets and verify(root) == []


@pytest.mark.parametrize("size", [1, 90, 900])
def test_laws_name_the_same_lines_whatever_the_ranges(in_parts, tmp_path, monkeypatch, size):
    shutil.copytree(in_parts, tmp_path / "root")
    folder, tokenized = tmp_path / "root" / names.NORMALIZED, tmp_path / "root" / names.TOKENIZED
    last = files(own_path(tmp_path / "root"))[-1]
    index = tokenized / "own/train/index/00002.jsonl"
    rows_ = last.read_bytes().splitlines(keepends=True)
    last.write_bytes(b"".join([*rows_[:4], b"{}\n", *rows_[4:6], b"no\n", *rows_[6:]]))
    rows_ = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join([*rows_[:7], rows_[3], *rows_[7:]]))

    def found() -> list[Violation]:
        return [*texts.normalized_laws(folder, OWN_TRAIN), *index_laws(tokenized)]

    def index_laws(where: Path) -> Iterator[Violation]:
        return shard_laws.index_laws(where, "own", "train", metas(where, "own", "train"))

    whole = found()
    named = [each.where.rpartition("/")[2] for each in whole]
    assert {f"{last.name}:5", f"{last.name}:8", "00002.jsonl:8"} <= {*named}
    monkeypatch.setattr(texts, "_RANGE_BYTES", size)
    monkeypatch.setattr(shard_laws, "_RANGE_BYTES", size)
    assert found() == whole


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_origins_of_a_split_in_parts_with_gaps_are_its_raw_bytes(tmp_path, count):
    recipe = RECIPE + "part_bytes = 4000\n"
    drop = own_drop(tmp_path, recipe, rows=2 * count)
    raw = (drop / "train.jsonl").read_bytes()
    built(tmp_path, CHAIN[0], OWN_TRAIN)
    dice = Random(1)
    gone = dice.sample(range(2 * count), count // 10)
    folder = tmp_path / names.NORMALIZED
    rows = mapped(folder / names.origins(OWN_TRAIN))[gone, 1].tolist()
    named = {("train.jsonl", row) for row in rows}
    add(drop, tombstones_of(DataRoot(tmp_path), "own", named, "asked"), ["train"])
    built(tmp_path, CHAIN[0], OWN_TRAIN)
    assert len(files(own_path(tmp_path))) > 5
    assert (folder / "own/train.numbers.npy").is_file()
    left = [number for number in range(2 * count) if number not in gone]
    for number in dice.sample(left, count):
        found = dict(facts(tmp_path, number))
        first, last = map(int, str(found["raw_bytes"]).split("-"))
        row = json.loads(raw[first:last])
        record, line = record_at(folder, OWN_TRAIN, number)
        assert (record["question"], record["answer"]) == (row["q"], row["a"])
        assert row["q"].startswith(f"How many are {number} ")
        file = (folder / str(found["normalized_file"])).read_bytes().split(b"\n")
        assert found["line"] == line and json.loads(file[line - 1]) == record

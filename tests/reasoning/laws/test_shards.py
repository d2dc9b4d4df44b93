"""Shards that break a law are found, and sound ones are not.

The laws of the manifest compare it with all splits, and its builder obeys them.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from gristmill.contract import GristmillError
from gristmill.reasoning.builders.manifest import all_metas, write_manifest
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.format import names
from gristmill.reasoning.format.published import shard_splits
from gristmill.reasoning.format.shards import manifest_entries, read_manifest
from gristmill.reasoning.laws.shards import _series, manifest_laws, other_shard_laws, shard_laws
from tests.reasoning import shard_folders
from tests.reasoning.normalized_files import numbered, write
from tests.reasoning.shard_folders import SmallShards, foreign, tensor

PARTITION = "gsm8k__train"
EOS = (50_256).to_bytes(4, "little")


def found(shards: SmallShards, sampled: bool = False) -> list[str]:
    violations = shard_laws(shards.tokenized, PARTITION, sampled=sampled)
    return [f"{each.law}: {each.where}: {each.found}" for each in violations]


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_what_the_builder_writes_breaks_no_law(tmp_path, vocabulary_root, world_size):
    shards = shard_folders.build(tmp_path, vocabulary_root, world_size)
    assert found(shards) == []


def test_a_split_without_texts_breaks_no_law(tmp_path, copied):
    for path in copied.index.parent.iterdir():
        path.unlink()
    copied.index.write_bytes(b"")
    assert found(copied) == []


def test_other_splits_are_not_looked_at_and_a_sample_leaves_out_whole_files(copied):
    assert [each.law for each in shard_laws(copied.tokenized, "wiqa__test")] == ["index"]
    copied.write_meta(replace(copied.metas()[0], file_sha256="0" * 64))
    assert found(copied, sampled=True) == []


Change = Callable[[SmallShards], object]


def meta(number: int = 1, **values: object) -> Change:
    return lambda shards: shards.write_meta(replace(shards.metas()[number], **values))  # type: ignore[arg-type]


def removed(number: int) -> Change:
    def change(shards: SmallShards) -> None:
        folder = shards.tokenized / shards.metas()[number].path
        for path in folder.parent.glob(f"{folder.stem}.*"):
            path.unlink()

    return change


def put(place: int, octets: bytes) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[4 * place : 4 * place + 4] = octets

    return change


def first_id(octets: bytes) -> Change:
    return lambda shards: shards.change_tensor(shards.metas()[0], put(0, octets))


def an_end_elsewhere(shards: SmallShards) -> None:
    end = shards.lines()[0]["num_tokens"]

    def swap(data: bytearray) -> None:
        before = bytes(data[4 * end - 4 : 4 * end])
        put(end - 1, EOS)(data)
        put(end, before)(data)

    shards.change_tensor(shards.metas()[0], swap)


def other_padding(shards: SmallShards) -> None:
    meta = next(meta for meta in shards.metas() if meta.pad_tokens)

    def swap(data: bytearray) -> None:
        first = bytes(data[:4])
        put(0, EOS)(data)
        put(meta.token_count - 1, first)(data)

    shards.change_tensor(meta, swap)


def fewer_texts(shards: SmallShards) -> None:
    one = shards.metas()[1]
    text, ends = one.text_tokens - 1, one.eos_tokens + 1
    shards.write_meta(replace(one, text_tokens=text, eos_tokens=ends))


FIRST = "gsm8k_train_000000"
CHANGES: dict[str, tuple[Change, str]] = {
    "dataset": (meta(dataset="wiqa"), "meta: "),
    "rank": (meta(rank=0), "meta: "),
    "tokens": (meta(token_count=25), "meta: "),
    "text tokens": (meta(text_tokens=0), "meta: "),
    "number": (
        lambda s: s.write_meta(replace(s.metas()[1], shard_index=3), s.metas()[1].path),
        "meta: ",
    ),
    "sha256": (meta(sha256="0" * 64), "sha256: "),
    "file": (meta(file_sha256="0" * 64), "file_sha256: "),
    "vocabulary": (meta(tokenizer_sha256="0"), "one kind of shards: "),
    "world size": (meta(2, world_size=1), "one kind of shards: "),
    "shape": (meta(num_sequences=2, token_count=16, text_tokens=0, eos_tokens=16), "shape: "),
    "ends": (fewer_texts, "ends: "),
    "first example": (meta(first_example=FIRST), "tiling: "),
    "last example": (meta(last_example=FIRST), "tiling: "),
    "no meta": (lambda s: (s.tokenized / names.meta(s.metas()[1].path)).unlink(), "files: "),
    "no tensor": (lambda s: (s.tokenized / s.metas()[1].path).unlink(), "files: "),
    "no json": (
        lambda s: (s.tokenized / names.meta(s.metas()[1].path)).write_text("{"),
        "readable: ",
    ),
    "no torch file": (lambda s: (s.tokenized / s.metas()[1].path).write_bytes(b"PK"), "readable: "),
    "another file": (lambda s: (s.index.parent / "notes.txt").write_text(""), "files: "),
    "no index": (lambda s: s.index.unlink(), "index: "),
    "gap between the shards of a rank": (removed(2), "numbers: .*lacks"),
    "last shard of a rank": (removed(-1), "index: "),
    "id behind the vocabulary": (first_id((50_257).to_bytes(4, "little")), "ids: "),
    "negative id": (first_id(b"\xff\xff\xff\xff"), "ids: "),
    "end too many": (first_id(EOS), "ends: "),
    "end elsewhere": (an_end_elsewhere, ".*its last token is not 50256"),
    "other padding": (other_padding, ".*its padding is not the id of the end"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_breaks_a_law(copied, change):
    make, law = CHANGES[change]
    make(copied)
    assert any(re.match(law, each, re.DOTALL) for each in found(copied)), found(copied)


def changed(line: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**line, **values}


def first_span(line: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**line, "spans": [{**line["spans"][0], **values}, *line["spans"][1:]]}


def in_shard(line: dict[str, Any], path: str) -> dict[str, Any]:
    return changed(first_span(line, shard_path=path), shard_path=path)


def cut(line: dict[str, Any]) -> dict[str, Any]:
    """Both the last span and the counts are one token shorter."""
    span = line["spans"][-1]
    spans = [*line["spans"][:-1], {**span, "end": span["end"] - 1}]
    tokens = line["num_tokens"]
    return {**line, "spans": spans, "num_tokens": tokens - 1, "num_tokens_with_eos": tokens}


LINE_CHANGES: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "other corpus": (lambda x: changed(x, example_id="wiqa_train_000007"), "example_id"),
    "short id": (lambda x: changed(x, example_id="gsm8k_train_7"), "is not gsm8k_train_<record>"),
    "other record": (lambda x: changed(x, example_id="gsm8k_train_000000"), "not after the one"),
    "rank": (lambda x: changed(x, rank=1 - x["rank"]), "rank is not that"),
    "record of another rank": (
        lambda x: changed(x, example_id=f"gsm8k_train_{int(x['example_id'][-6:]) + 1:06d}"),
        "rank is not that",
    ),
    "shard": (lambda x: in_shard(x, x["shard_path"].replace("_0000", "_0009")), "is no shard"),
    "elsewhere": (lambda x: in_shard(x, "/etc/passwd"), "is not below"),
    "shard of another rank": (
        lambda x: first_span(x, shard_path=x["shard_path"][:-4] + "1.pt"),
        "",
    ),
    "column": (lambda x: first_span(x, start=x["spans"][0]["start"] + 1), ""),
    "fewer spans": (lambda x: changed(x, spans=x["spans"][:-1]), "number of tokens"),
    "count": (lambda x: changed(x, num_tokens=x["num_tokens"] + 1), "number of tokens"),
    "first row": (lambda x: changed(x, sequence_index=x["sequence_index"] + 1), "first token"),
    "first column": (lambda x: changed(x, token_start=x["token_start"] + 1), "first token"),
    "later": (
        lambda x: changed(
            first_span(x, start=x["spans"][0]["start"] + 1),
            token_start=x["token_start"] + 1,
            num_tokens=x["num_tokens"] - 1,
            num_tokens_with_eos=x["num_tokens"],
        ),
        "does not begin where the one before ends",
    ),
    "first shard": (lambda x: changed(x, shard_path="a/tokenized/gpt2/b"), "first token"),
    "sha256": (lambda x: changed(x, text_sha256="A" * 64), "no sha256"),
    "end": (cut, "its last token is not 50256"),
    "huge": (lambda x: first_span(x, end=1 << 62), ""),
    "type": (lambda x: changed(x, rank="0"), "rank: must be of type int"),
    "key": (lambda x: {**x, "more": 1}, "the keys must be"),
    "extras": (lambda x: changed(x, extras=[]), "extras: must be an object"),
}


@pytest.mark.parametrize("change", LINE_CHANGES)
def test_a_changed_line_of_the_index_breaks_a_law(copied, change):
    make, problem = LINE_CHANGES[change]
    lines = copied.lines()
    # One of rank 0 with several spans.
    place = next(k for k, x in enumerate(lines) if k > 2 and not x["rank"] and len(x["spans"]) > 1)
    lines[place] = make(lines[place])
    copied.write_lines(lines)
    violations = found(copied)
    assert len(violations) == 1 and violations[0].startswith("index: ")
    assert problem in violations[0], violations
    named = int(violations[0].split("index.jsonl:")[1].split(":")[0])
    assert place <= named - 1 <= place + 2


def test_a_line_behind_the_last_token_of_a_shard_breaks_a_law(tmp_path, built):
    record = {"question": "one two three four five six seven"}
    jsonl = write(tmp_path / "gsm8k" / "train.jsonl", [record] * 3)
    config = replace(built.config, world_size=1, safetensors=False, tokens_per_shard=16)
    tokenize(jsonl, tmp_path / "out", config)
    shards = replace(built, tokenized=tmp_path / "out")
    assert (found(shards), len(shards.lines())) == ([], 3)
    last = {**shards.lines()[-1], "example_id": "gsm8k_train_000003", "sequence_index": 1}
    last["spans"] = [{**last["spans"][0], "sequence_index": 1}]
    shards.write_lines([*shards.lines(), last])
    assert any("behind the end of its shard" in each for each in found(shards))


@pytest.mark.parametrize(
    ("changes", "law"),
    [({"num_sequences": 2}, "full"), ({"pad_tokens": 1}, "full"), ({"pad_tokens": 8}, "padding")],
)
def test_a_shard_that_is_not_full_must_be_the_last(built, changes, law):
    metas = built.metas()
    assert list(_series(metas)) == []
    place = 0 if law == "full" else -1
    metas[place] = replace(metas[place], **changes)
    assert law in {each.law for each in _series(metas)}


def test_lines_in_other_bytes_mean_the_same_and_one_too_many_breaks_a_law(copied):
    lines = [{**line, "extras": {"a": "ß]}"}} for line in copied.lines()]
    index = copied.index
    index.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert found(copied) == []
    lines = copied.lines()
    line = changed(lines[-1], example_id="gsm8k_train_000099", rank=1)
    copied.write_lines([*lines, line])
    assert len(found(copied)) == 1


@pytest.mark.parametrize(
    "damaged", [b"x%b\n", b"\n%b\n", b'{"a": %b}\n', b"%b, \n"], ids=["x", "blank", "key", "comma"]
)
def test_a_line_that_is_no_line_of_an_index_is_named(copied, damaged):
    index = copied.index
    lines = index.read_bytes().splitlines()
    index.write_bytes(b"\n".join(lines[:3]) + b"\n" + damaged % lines[3])
    (only,) = found(copied)
    assert only.startswith("index: ")
    assert "index.jsonl:4" in only


@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_missing_line_of_the_index_breaks_a_law(copied, place):
    lines = copied.lines()
    del lines[place]
    copied.write_lines(lines)
    assert len(found(copied)) >= 1


SHARD = "mine/train/shard_{:05d}"


def _write(folder: Path, number: int, shape: tuple[int, int], **other: Any) -> None:
    """Write a shard with its meta; other: entries of the meta that differ."""
    path, ids = folder / SHARD.format(number), tensor(shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    foreign(path.with_suffix(".pt"), ids)
    meta = {
        "dataset": "mine",
        "split": "train",
        "seq_len": shape[1],
        "num_sequences": shape[0],
        "token_count": ids.size,
        "shard_index": number,
        "path": f"{SHARD.format(number)}.pt",
        "sha256": hashlib.sha256(ids.tobytes()).hexdigest(),
    }
    path.with_suffix(".meta.json").write_text(json.dumps(meta | other))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    _write(tmp_path, 0, (4, 8))
    _write(tmp_path, 1, (4, 8))
    _write(tmp_path, 2, (1, 8))
    return tmp_path


def other(**values: object) -> Callable[[Path], object]:
    """Writes the shard 1 with other entries of its meta."""
    return lambda folder: _write(folder, 1, (4, 8), **values)


def found_of_others(folder: Path) -> list[str]:
    return [
        str(each).replace(f"{folder}/", "") for each in other_shard_laws(folder, "mine", "train")
    ]


def test_good_shards_of_any_corpus_break_no_law(shards):
    assert shard_splits(shards) == [("mine", "train")]
    assert found_of_others(shards) == []


NAME = SHARD.format(1)
META = f"{NAME}.meta.json"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no meta": (
        lambda folder: (folder / META).unlink(),
        f"{NAME}.pt: orphan: has no meta file that can be read",
    ),
    "no tensor": (
        lambda folder: (folder / f"{NAME}.pt").unlink(),
        f"{META}: orphan: its shard is missing",
    ),
    "no JSON": (
        lambda folder: (folder / META).write_text("{"),
        f"{META}: meta: is no JSON: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)",
    ),
    "a key is missing": (
        lambda folder: (folder / META).write_text('{"split": "train"}'),
        f"{META}: meta: its first keys must be dataset, split, seq_len, num_sequences, "
        "token_count, shard_index, path, sha256",
    ),
    "no tensor file": (
        lambda folder: (folder / f"{NAME}.pt").write_bytes(b"PK"),
        f"{NAME}.pt: shard: {NAME}.pt: ",
    ),
    "sha256": (other(sha256="0" * 64), f"{NAME}.pt: sha256: its tensor has "),
    "shape": (
        other(num_sequences=2, seq_len=16),
        f"{NAME}.pt: shape: is (4, 8), its meta file has (2, 16)",
    ),
    "tokens": (other(token_count=31), f"{NAME}.pt: shape: is (4, 8), "),
    "number": (other(shard_index=7), f"{META}: path: is that of 'mine/train/shard_00007.pt'"),
    "corpus": (other(dataset="x"), f"{META}: path: is that of 'x/train/shard_00001.pt'"),
    "text": (other(seq_len="8"), f"{NAME}.pt: shape: is (4, 8), its meta file has (4, '8')"),
    "not full": (
        lambda folder: _write(folder, 1, (3, 8)),
        f"{NAME}.pt: full: has not as many sequences as the first shard",
    ),
    "seq_len": (
        lambda folder: _write(folder, 2, (4, 4)),
        "mine/train/shard_00002.pt: full: seq_len is not that of the first shard",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_named_with_its_rule(shards, damage):
    change, expected = DAMAGES[damage]
    change(shards)
    lines = found_of_others(shards)
    assert lines[0].startswith(expected), lines
    assert {line.partition(": ")[0].partition(".")[0] for line in lines} == {
        expected.partition(": ")[0].partition(".")[0]
    }


@pytest.mark.parametrize(("token", "ids"), [(50_257, "0 to 50257"), (-1, "-1 to 0")])
def test_an_id_outside_of_the_vocabulary_is_named(tmp_path, token, ids):
    wrong = np.array([[0, token]], np.int32)
    _write(tmp_path, 0, (1, 2), sha256=hashlib.sha256(wrong.tobytes()).hexdigest())
    foreign(tmp_path / f"{SHARD.format(0)}.pt", wrong)
    assert found_of_others(tmp_path) == [
        f"mine/train/shard_00000.pt: ids: ids from {ids}, allowed 0 to 50256"
    ]


PARTITIONS = ["wiqa__train", "gsm8k__train", "gsm8k__test"]


@pytest.fixture
def several(copied: SmallShards, tmp_path: Path) -> SmallShards:
    """Three splits, one of them without a shard."""
    add_split(copied, tmp_path, "gsm8k", "test", 7)
    add_split(copied, tmp_path, "wiqa", "train", 0)
    return copied


def add_split(
    shards: SmallShards, scratch: Path, corpus: str, split: str, count: int, **config: object
) -> None:
    jsonl = write(shards.normalized / corpus / f"{split}.jsonl", numbered(count), corpus)
    out = scratch / f"{corpus}_{split}"
    tokenize(jsonl, out, replace(shards.config, **config))
    target = shards.tokenized / corpus / split
    target.parent.mkdir(exist_ok=True)
    (out / corpus / split).rename(target)


def found_of_manifest(shards: SmallShards, folder: Path) -> list[str]:
    violations = manifest_laws(folder, "manifest", shards.tokenized)
    return [f"{each.law}: {each.where}: {each.found}" for each in violations]


def test_the_manifest_lists_all_metas_by_path(several, tmp_path):
    summary = write_manifest(several.tokenized, tmp_path / "out", PARTITIONS)

    octets = (tmp_path / "out" / "manifest.json").read_bytes()
    metas = sorted(several.tokenized.rglob("shard_*.meta.json"), key=lambda path: path.as_posix())
    listed = [json.loads(path.read_bytes()) for path in metas]
    assert octets == json.dumps(listed, indent=2).encode()
    assert listed[0]["path"] == "gsm8k/test/shard_00000.pt"
    index = b"".join(
        (several.tokenized / name / "index.jsonl").read_bytes()
        for name in ("gsm8k/test", "gsm8k/train", "wiqa/train")
    )
    assert (tmp_path / "out" / "index.jsonl").read_bytes() == index
    assert (summary.splits, summary.shards) == (3, len(metas))
    assert summary.examples == index.count(b"\n") == summary.eos_tokens
    assert summary.sequences == sum(meta["num_sequences"] for meta in listed)
    assert summary.text_tokens == sum(meta["text_tokens"] for meta in listed)
    assert len(read_manifest(tmp_path / "out")) == summary.shards
    assert found_of_manifest(several, tmp_path / "out") == []


def test_a_manifest_without_shards_is_an_empty_list(copied, tmp_path):
    add_split(copied, tmp_path, "wiqa", "train", 0)
    write_manifest(copied.tokenized, tmp_path / "out", ["wiqa__train"])
    assert (tmp_path / "out" / "manifest.json").read_bytes() == b"[]"
    assert (tmp_path / "out" / "index.jsonl").read_bytes() == b""


@pytest.mark.parametrize(("name", "value"), [("world_size", 3), ("seq_len", 4)])
def test_shards_of_two_configs_have_no_manifest(copied, tmp_path, name, value):
    add_split(copied, tmp_path, "gsm8k", "test", 7, **{name: value})
    rule = f"gsm8k/train/shard_00000.pt has {name} {getattr(copied.config, name)}"
    with pytest.raises(GristmillError, match=re.escape(rule)):
        write_manifest(copied.tokenized, tmp_path / "out", ["gsm8k__train", "gsm8k__test"])
    metas = all_metas(copied.tokenized, [("gsm8k", "test"), ("gsm8k", "train")])
    (tmp_path / "manifest.json").write_bytes(b"".join(manifest_entries(metas)))
    assert any(
        each.startswith("one kind of shards") for each in found_of_manifest(copied, tmp_path)
    )


@pytest.mark.parametrize(
    ("change", "partitions", "rule"),
    [
        (meta(-1, tokenizer_sha256="0" * 64), [PARTITION], "has tokenizer_sha256 0000"),
        (lambda s: s, [], "no split is published"),
        (lambda s: s.index.unlink(), [PARTITION], r"gsm8k/train/index\.jsonl: is gone"),
    ],
)
def test_a_manifest_that_cannot_be_made_says_why(copied, tmp_path, change, partitions, rule):
    change(copied)
    with pytest.raises(GristmillError, match=rule):
        write_manifest(copied.tokenized, tmp_path / "out", partitions)
    assert partitions or not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", ["source", "other", "longer", "shorter", "no file"])
@pytest.mark.parametrize(
    ("name", "law"), [("manifest.json", "inventory"), ("index.jsonl", "index")]
)
def test_another_manifest_or_index_breaks_a_law(several, tmp_path, name, law, change):
    write_manifest(several.tokenized, tmp_path / "out", PARTITIONS)
    path = tmp_path / "out" / name
    octets = path.read_bytes()
    if change == "source" and law == "index":
        several.index.write_bytes(several.index.read_bytes()[:-1])
    elif change == "source":
        several.write_meta(replace(several.metas()[3], file_sha256="0" * 64))
    elif change == "no file":
        path.unlink()
    else:
        last = {"other": octets.replace(b"1", b"2", 1), "longer": octets + b"\n"}
        path.write_bytes(last.get(change, octets[:-1]))
    (violation,) = found_of_manifest(several, tmp_path / "out")
    assert violation.startswith((f"{law}: {name}", f"readable: {name}"))


def test_a_folder_without_splits_breaks_a_law(copied, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "manifest.json").write_bytes(b"[]")
    (empty / "index.jsonl").write_bytes(b"")
    assert [each.law for each in manifest_laws(empty)] == ["splits"]

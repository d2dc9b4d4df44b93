"""Laws of Harmony shards, of Megatron datasets, and of their manifest over the published family."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.contract import BadInput, Violation
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.inbox import division
from gristmill.provenance import read_record
from gristmill.synth import laws
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
from gristmill.synth.format import harmony_tokens, megatron, trace
from gristmill.synth.format.megatron import Indexed
from gristmill.synth.format.trace import trace as trace_document
from gristmill.synth.laws import (
    HashBounds,
    harmony_law,
    harmony_manifest_law,
    kd_law,
    kd_laws,
    kd_manifest_law,
    shard_numbers,
    shard_records,
)
from tests.sample_root import SampleRoot
from tests.synth.conversations import as_json, conversation
from tests.synth.damage import broken_laws, set_value, train_tokens


def test_a_built_shard_breaks_no_law_and_a_missing_one_is_named(harmony, tmp_path):
    for partition in ("00", None):
        assert list(harmony_law(Subject(harmony.parent, partition))) == []
    for subject, number in ((Subject(harmony.parent, "01"), "01"), (Subject(tmp_path), "XX")):
        assert list(harmony_law(subject)) == [
            Violation("shards", ".", f"there is no synth_harmony_shard_{number}.parquet")
        ]


@pytest.mark.slow
def test_wrong_types_and_nulls_are_violations(tmp_path):
    wrong = pa.table({"messages_json": pa.array([1]), "synth_id": pa.array([None], pa.string())})
    pq.write_table(wrong, tmp_path / "synth_harmony_shard_00.parquet")
    assert [v.law for v in harmony_law(Subject(tmp_path))] == ["columns", "no nulls"]


@pytest.mark.parametrize(
    ("manifest", "metadata", "files"),
    [
        ("{}", "{}", []),
        ("[]", "{}", ["manifest.json"]),
        ("{}", "{", ["metadata.json"]),
        (None, "null", ["manifest.json", "metadata.json"]),
    ],
)
def test_both_files_must_be_json_objects(tmp_path, manifest, metadata, files):
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    (tmp_path / "metadata.json").write_text(metadata)
    violations = list(harmony_manifest_law(Subject(tmp_path, "manifest")))
    assert [(v.law, v.where) for v in violations] == [("readable", file) for file in files]


@pytest.mark.parametrize("batch_tokens", [1, 500, 1 << 20])
def test_batches_are_whole_documents_and_cover_the_dataset(kd_root, monkeypatch, batch_tokens):
    monkeypatch.setattr(laws, "_BATCH_TOKENS", batch_tokens)
    tokens = train_tokens(kd_root)
    edges = [edge for _, batch in laws._batches(tokens) for edge in batch[:-1].tolist()]
    assert edges == tokens.bounds(0, len(tokens)).tolist()[:-1]
    sizes = [int(batch[-1] - batch[0]) for _, batch in laws._batches(tokens)]
    longest = int(tokens.lengths.max())
    assert max(sizes) <= max(batch_tokens, longest)
    assert broken_laws(kd_root) == set()


def test_only_the_documented_control_tokens_follow_each_other():
    """The table of `docs/formats/synth.md#value-laws`."""
    follows, closing = laws._tables()
    limit = harmony_tokens.BODY_LIMIT
    pairs = {
        (before + limit, after + limit) for before, after in zip(*follows.nonzero(), strict=True)
    }
    assert pairs == {
        (200006, 200005), (200006, 200003), (200006, 200008),
        (200005, 200003), (200005, 200008),
        (200003, 200008),
        (200008, 200007), (200008, 200012), (200008, 200002),
        (200007, 200006), (200007, 199999),
        (200012, 200006), (200012, 199999),
        (200002, 199999),
        (199999, 200006),
    }  # fmt: skip
    assert set((closing.nonzero()[0] + limit).tolist()) == {200007, 200012, 200002, 199999}


@pytest.mark.parametrize(
    ("place", "token", "law"),
    [
        (5, 201_088, "tokens in the vocabulary"),
        (5, -1, "tokens in the vocabulary"),
        (-1, 5, "EOD at the end"),
        (5, 200_007, "no control ids in bodies"),
        (5, 200_050, "no control ids in bodies"),
        (5, 199_999, "no control ids in bodies"),
        (5, 200_006, "no control ids in bodies"),
        (0, 5, "no control ids in bodies"),
    ],
)
@pytest.mark.parametrize("rows", [1, 1024])
@pytest.mark.parametrize("has_trace", [True, False])
def test_a_wrong_token_breaks_one_law(kd_copy, place, token, law, rows, has_trace, monkeypatch):
    monkeypatch.setattr(laws, "_BATCH_ROWS", rows)
    monkeypatch.setattr(laws, "_BATCH_TOKENS", 400 if rows == 1 else 1 << 20)
    if not has_trace:
        (kd_copy / "trace/trace_00.parquet").unlink()
    begin, end = train_tokens(kd_copy).bounds(7, 8).tolist()
    where = (end if place < 0 else begin) + place
    set_value(kd_copy / "train/shard_00_tokens.bin", "<i4", where, token)
    violations = [v for v in kd_laws(kd_copy, "00") if v.law == law]
    assert len(violations) == 1
    assert violations[0].where.startswith("train/shard_00_tokens: document 7, token ")


def test_one_ordinary_token_after_a_terminator_is_a_violation(kd_copy):
    """The body loses its last token to the terminator, whose place gets an ordinary token."""
    tokens = train_tokens(kd_copy)
    end = int(np.flatnonzero(tokens.load(0, int(tokens.lengths[0])) == harmony_tokens.END)[0])
    file = kd_copy / "train/shard_00_tokens.bin"
    set_value(file, "<i4", end - 1, harmony_tokens.END)
    set_value(file, "<i4", end, 5)
    assert broken_laws(kd_copy) == {"no control ids in bodies"}


@pytest.mark.parametrize(
    ("name", "place", "value", "law"),
    [
        ("lossmask", 3, 1, "mask is span not 0"),
        ("span", 3, 2, "mask is span not 0"),
        ("span", 3, 3, "mask is span not 0"),
        ("lossmask", -1, 1, "EOD masked"),
        ("lossmask", -2, 1, "EOD masked"),
    ],
)
def test_a_wrong_mask_or_span_breaks_its_law(kd_copy, name, place, value, law):
    where = place if place >= 0 else int(train_tokens(kd_copy).bounds(4, 4)[0]) + place
    set_value(kd_copy / f"train/shard_00_{name}.bin", "u1", where, value)
    assert law in broken_laws(kd_copy)


def test_every_value_is_read_once(kd_root, monkeypatch):
    read: Counter[tuple[Path, int]] = Counter()
    load = Indexed.load

    def counted(self: Indexed, begin: int, stop: int) -> npt.NDArray[Any]:
        read.update((self.path, place) for place in range(begin, stop))
        return load(self, begin, stop)

    monkeypatch.setattr(Indexed, "load", counted)
    assert list(kd_laws(kd_root, "00")) == []
    assert set(read.values()) == {1}
    sizes = [path.stat().st_size for path in kd_root.glob("*/shard_00_lossmask.bin")]
    assert len(read) == 3 * sum(sizes)


def test_documents_behind_a_trace_that_ends_early_are_checked(kd_copy):
    """The trace loses its last rows; the last document of train has a wrong value."""
    file = kd_copy / "trace/trace_00.parquet"
    rows = pq.read_table(file)
    pq.write_table(rows.slice(0, len(rows) - 40), file)
    tokens = train_tokens(kd_copy)
    set_value(kd_copy / "train/shard_00_tokens.bin", "<i4", tokens.size - 1, 5)
    assert {"EOD at the end", "trace"} <= broken_laws(kd_copy)


def test_unequal_boundaries_are_not_checked_and_an_empty_folder_has_no_shard(kd_root, tmp_path):
    prefix = kd_root / "train/shard_00_tokens"
    tokens = megatron.read(prefix)
    split = laws.Values("train", {"tokens": tokens}, checked=False)
    assert list(split.violations()) == []
    assert len(split.ids(0, tokens.bounds(0, 1))) == tokens.lengths[0]
    assert broken_laws(tmp_path, None) == {"trace"}
    assert [v.law for v in kd_laws(tmp_path)] == ["shards"]


Change = Callable[[dict[str, list]], None]


def test_built_datasets_break_no_law_and_the_fraction_is_that_of_the_config(kd_root):
    assert list(kd_laws(kd_root, "00", 0.3)) == []
    assert list(kd_laws(kd_root)) == []
    assert list(kd_law(Subject(kd_root, "00", config={"valid_fraction": 0.3}))) == []
    subject = Subject(kd_root, "00", config={"valid_fraction": 0.001})
    assert {violation.law for violation in kd_law(subject)} == {"split rule"}
    assert broken_laws(kd_root, 0.01) == {"split rule"}


@pytest.mark.parametrize(
    ("dtype", "moved", "law"), [("u1", 1, "equal boundaries"), ("<i4", 0, "dtypes")]
)
def test_a_sidecar_of_other_lengths_or_another_type_breaks_its_law(kd_copy, dtype, moved, law):
    path = kd_copy / "train/shard_00_span"
    lengths = train_tokens(kd_copy).lengths.copy()
    lengths[:2] += [moved, -moved]
    values = np.fromfile(path.with_suffix(".bin"), dtype="u1").astype(dtype)
    path.with_suffix(".bin").unlink()
    path.with_suffix(".idx").unlink()
    with megatron.IndexedWriter(path, dtype) as writer:
        writer.add(values, lengths)
    assert broken_laws(kd_copy) == {law}


@pytest.mark.parametrize(
    ("path", "law"),
    [
        ("train/shard_00_tokens.idx", "empty split"),
        ("train/shard_00_span.bin", "readable"),
        ("trace/trace_00.parquet", "trace"),
    ],
)
def test_a_missing_file_breaks_its_law(kd_copy, path, law):
    (kd_copy / path).unlink()
    assert law in broken_laws(kd_copy)


def test_each_file_of_a_split_without_tokens_is_a_violation(kd_copy):
    (kd_copy / "valid/shard_00_tokens.idx").unlink()
    names = ["lossmask.bin", "lossmask.idx", "span.bin", "span.idx", "tokens.bin"]
    assert list(kd_laws(kd_copy, "00"))[:5] == [
        Violation("empty split", f"valid/shard_00_{name}", "there is no tokens index")
        for name in names
    ]


def test_a_missing_split_is_no_violation_but_for_its_trace(kd_copy):
    shutil.rmtree(kd_copy / "valid")
    assert broken_laws(kd_copy) == {"trace"}


def swap_ids(table: dict[str, list]) -> None:
    """Give one valid document the id of a train one."""
    at = {split: table["split"].index(split) for split in ("train", "valid")}
    table["synth_id"][at["valid"]] = table["synth_id"][at["train"]]


def lose_a_row(table: dict[str, list]) -> None:
    for column in table.values():
        column.pop()


def unknown_split(table: dict[str, list]) -> None:
    """Add a row of a third split: train and valid stay complete."""
    for name, column in table.items():
        column.append("test" if name == "split" else column[0])


def changed(name: str, row: int, change: Callable[[Any], Any]) -> Change:
    """Gives one value another one."""
    return lambda table: table[name].__setitem__(row, change(table[name][row]))


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (swap_ids, "disjoint splits"),
        (lose_a_row, "trace"),
        (changed("offsets", 3, lambda x: [*x[:2], x[2] + 1, *x[3:]]), "trace"),
        (changed("offsets", 3, lambda x: [*x[:-1], x[-1] - 1]), "trace"),
        (changed("document", 0, lambda x: x + 1), "trace"),
        (changed("offsets", 3, lambda x: []), "trace"),
        (changed("offsets", 3, lambda x: [None, *x[1:]]), "trace"),
        (unknown_split, "trace"),
    ],
)
def test_a_wrong_trace_breaks_its_law(kd_copy, change, law):
    path = kd_copy / trace.path("00")
    table = pq.read_table(path).to_pydict()
    change(table)
    pq.write_table(pa.table(table, schema=trace.schema()), path)
    assert law in broken_laws(kd_copy)


@pytest.mark.parametrize("damage", ["cut", "pages", "columns", "nulls", "bytes"])
def test_a_damaged_trace_breaks_the_law_and_cannot_be_read(kd_copy, damage):
    path = kd_copy / trace.path("00")
    table = pq.read_table(path)
    ids = table["synth_id"].to_pylist()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "pages":
        data = bytearray(path.read_bytes())
        data[4:900] = bytes(896)
        path.write_bytes(data)
    elif damage == "columns":
        pq.write_table(table.drop_columns(["offsets"]), path)
    elif damage == "nulls":
        pq.write_table(table.set_column(4, "synth_id", pa.array([None, *ids[1:]])), path)
    else:
        buffers = pa.array([b"\xff", *(i.encode() for i in ids[1:])], pa.binary()).buffers()
        column = pa.Array.from_buffers(pa.string(), len(ids), buffers)
        pq.write_table(table.set_column(4, "synth_id", column), path)
    assert broken_laws(kd_copy) == {"trace"}
    if damage in ("cut", "columns", "pages"):
        with pytest.raises(BadInput, match=r"trace_00\.parquet"):
            trace_document(kd_copy, "00", "train", 0)


@pytest.mark.parametrize("answers", [1, 60])
def test_answers_of_one_prompt_have_one_id_and_one_split(vocabulary, tmp_path, write_rows, answers):
    """Three of six prompts are valid by the rule at 0.1: with 60 answers each, 180 of 360 rows."""
    ids = ["p11", "p15", "p31", "p0", "p1", "p2"]
    limit = division.threshold(0.1)
    rows = [
        (name, as_json(conversation(f"question {name}", f"thought {n}", "an answer")))
        for name in ids
        for n in range(answers)
    ]
    out = tmp_path / "kd"
    build_kd_shard(write_rows(rows), out, KDConfig(vocabulary, 0.1))
    assert sum(division.is_valid(name, limit) for name in ids) == 3
    assert list(kd_laws(out, "07", 0.1)) == []


ids = st.lists(st.text("abc", min_size=1), unique=True, max_size=5)


@given(ids, ids, st.floats(0, 1))
@example(["memorization_82_52457"], ["memorization_german_10_150696"], 0.3)
@example([], ["memorization_german_10_150696"], 0.356852)
@example(["a"], ["a"], 0.5)
def test_a_threshold_divides_the_ids_that_the_rule_puts_on_its_sides(valid, train, fraction):
    bounds = HashBounds()
    for split, members in (("valid", valid), ("train", train)):
        for member in members:
            bounds.add(split, iter([member]))
    low, high = sorted(map(division.value, valid)), sorted(map(division.value, train))
    assert bounds.divide() == all(one < other for one in low for other in high)
    limit = division.threshold(fraction)
    by_rule = all(division.is_valid(each, limit) for each in valid)
    assert bounds.divide_at(fraction) == (
        by_rule and not any(division.is_valid(each, limit) for each in train)
    )
    bounds.highest_valid, bounds.lowest_train = -1, limit
    assert bounds.divide_at(fraction)
    bounds.highest_valid = limit
    assert not bounds.divide_at(fraction)


NUMBERS = ("00", "01", "02", "03")


@pytest.fixture(scope="module")
def kd_dataset(sample_root: SampleRoot) -> Path:
    """A published Megatron dataset, only for reading."""
    return sample_root.data / "megatron/synth_kd_v1"


def test_a_published_manifest_has_the_files_and_sums_of_its_shards(kd_dataset):
    root = kd_dataset.parents[1]
    manifest = json.loads((kd_dataset / "manifest.json").read_text())
    records = {record.partition: record for record in shard_records(kd_dataset, skip="manifest")}
    for inventory in manifest["splits"].values():
        assert [shard["name"] for shard in inventory["shards"]] == [f"shard_{n}" for n in NUMBERS]
        for shard in inventory["shards"]:
            for key, path in shard["paths"].items():
                assert (root.parent / path).stat().st_size == shard["bytes"][key]
                assert sha256_file(root.parent / path) == shard["sha256"][key]
    assert manifest["data_versions"] == {n: records[n].data_version for n in NUMBERS}
    source = root / "synth_harmony/manifest.json"
    assert manifest["input"]["manifest_sha256"] == sha256_file(source)
    rows = json.loads(source.read_text())["storage"]["total_rows"]
    assert sum(manifest["splits"][split]["rows"] for split in manifest["splits"]) == rows
    assert records["00"].libraries["openai-harmony"] == "0.0.8"


def test_the_digest_of_a_shard_is_that_of_its_record_which_must_be_whole(dataset):
    prefix, record = dataset / "train/shard_02_tokens", dataset / "provenance/02.json"
    assert megatron.digest(prefix) == read_record(record).data_version
    record.write_text(record.read_text()[:-9])
    with pytest.raises(RuntimeError, match=r"provenance/02\.json: not a provenance record"):
        megatron.digest(prefix)


@pytest.fixture
def dataset(kd_dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kd_dataset, tmp_path / "kd"))


def violations(root: Path) -> list[tuple[str, str]]:
    return [(v.law, v.found) for v in kd_manifest_law(Subject(root, "manifest"))]


def test_a_published_manifest_breaks_no_law(kd_dataset, tmp_path):
    assert violations(kd_dataset) == []
    shutil.copy(kd_dataset / "manifest.json", tmp_path)
    staged = Subject(tmp_path, "manifest", [kd_dataset, kd_dataset.parent])
    assert list(kd_manifest_law(staged)) == []
    assert shard_numbers(kd_dataset) == list(NUMBERS)
    assert [r.partition for r in shard_records(kd_dataset, skip="manifest")] == list(NUMBERS)


@pytest.mark.parametrize(
    ("text", "law", "rule"),
    [
        ("{}", "schema", "is not a manifest of Megatron datasets: KeyError('config_hash')"),
        (
            '{"config_hash": 1, "config": [], "splits": {"train": 3}}',
            "schema",
            "is not a manifest of Megatron datasets: ",
        ),
        ("[1]", "readable", "is not a JSON object"),
    ],
)
def test_another_file_is_a_violation_and_no_error(dataset, text, law, rule):
    (dataset / "manifest.json").write_text(text)
    last_law, last_rule = violations(dataset)[-1]
    assert last_law == law
    assert last_rule.startswith(rule)


ManifestChange = Callable[[dict[str, Any]], object]


def shard_2(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["splits"]["train"]["shards"][2]


@pytest.mark.parametrize(
    ("change", "law", "rule"),
    [
        (lambda m: m["config"].update(valid_fraction=0.5), "config hash", "not the hash"),
        (lambda m: shard_2(m).update(rows=1), "inventory",
         "train shard 02: its record has other rows"),
        (lambda m: shard_2(m).update(tokens=1), "inventory", "record has other tokens:"),
        (lambda m: shard_2(m)["bytes"].update(span_bin=1), "inventory", "other span_bin:"),
        (lambda m: shard_2(m)["sha256"].update(span_idx="0"), "inventory", "other span_idx:"),
        (lambda m: shard_2(m)["paths"].update(span_idx="x/y"), "inventory", "other span_idx:"),
        (lambda m: m["splits"]["train"]["shards"].pop(1), "inventory", "train lacks shard 01"),
        (
            lambda m: shard_2(m).update(name="shard_07"),
            "inventory",
            "train lists shard 07, which has no record",
        ),
        (lambda m: m["splits"].pop("valid"), "schema", "KeyError('valid')"),
    ],
)  # fmt: skip
def test_a_manifest_that_differs_from_the_records_is_a_violation(dataset, change, law, rule):
    path = dataset / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    assert any(found == law and rule in text for found, text in violations(dataset))


def test_shards_of_unequal_configs_are_a_violation(dataset):
    record = dataset / "provenance/01.json"
    record.write_text(record.read_text().replace('"valid_fraction": 0.1', '"valid_fraction": 0.3'))
    ((law, rule),) = violations(dataset)
    assert law == "equal configs"
    assert "shards 00 and 01 were built from unequal configs: valid_fraction" in rule


def test_an_id_in_train_of_one_shard_and_valid_of_another_is_a_violation(dataset):
    tables = {
        number: pq.read_table(dataset / trace.path(number)).to_pylist() for number in ("00", "03")
    }
    valid = next(row for row in tables["03"] if row["split"] == "valid")
    valid["synth_id"] = next(row for row in tables["00"] if row["split"] == "train")["synth_id"]
    path = dataset / trace.path("03")
    pq.write_table(pa.Table.from_pylist(tables["03"], schema=trace.schema()), path)
    assert violations(dataset) == [
        (
            "disjoint splits",
            "no value of the synth_id hash divides train from valid over all shards",
        )
    ]


def test_a_missing_trace_is_a_violation(dataset):
    (dataset / trace.path("02")).unlink()
    assert [law for law, _ in violations(dataset)] == ["trace"]

"""The builder of a shard: splits, caps, bad rows, workers, kills."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, counts_of
from gristmill.inbox import division
from gristmill.run.parts import PartStore
from gristmill.run.progress import Progress, Report
from gristmill.synth import show
from gristmill.synth.builders import kd_part, kd_shard
from gristmill.synth.builders.kd_shard import build_kd_shard, shard_number
from gristmill.synth.config import KDConfig
from gristmill.synth.format import megatron, quarantine, trace
from gristmill.synth.format.trace import trace as trace_document
from gristmill.synth.laws import kd_laws
from gristmill.synth.render import documents
from tests.synth.conversations import as_json, conversation, hashes, message

Write = Callable[..., Path]
GOOD = as_json(conversation("a question", "some thought", "an answer"))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 20)


def test_documents_keep_their_order_and_split(harmony, vocabulary, tmp_path):
    out = tmp_path / "out"
    summary = build_kd_shard(harmony, out, KDConfig(vocabulary, 0.3))
    ids = pq.read_table(harmony)["synth_id"].to_pylist()
    limit = division.threshold(0.3)
    expected = {
        "train": [i for i in ids if not division.is_valid(i, limit)],
        "valid": [i for i in ids if division.is_valid(i, limit)],
    }
    assert (summary.train_rows, summary.valid_rows) == tuple(map(len, expected.values()))
    assert min(map(len, expected.values())) > 10
    for name, members in expected.items():
        assert len(megatron.read(out / name / "shard_00_tokens")) == len(members)
        for document in (0, len(members) // 2, len(members) - 1):
            origin = trace_document(out, "00", name, document)
            assert origin.synth_id == members[document]
            assert ids[origin.row - 1] == origin.synth_id
            tokens = megatron.read(out / name / "shard_00_tokens")[document]
            assert [tokens[begin] for begin, _ in origin.message_bounds()] == [200006] * 5
            assert tokens[origin.offsets[-1]] == 199999
    assert list(kd_laws(out, None, 0.3)) == []
    assert sum(summary.spans.values()) == summary.train_tokens + summary.valid_tokens
    assert sum(summary.languages.values()) == len(ids)
    assert summary.control_texts > 0
    assert set(hashes(out)) == set(summary.files)
    with pytest.raises(BadInput, match="no document 9999 in train of shard 00"):
        trace_document(out, "00", "train", 9999)


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("several", [3, 2])
def test_workers_or_parts_change_no_byte(harmony, kd_build, vocabulary, tmp_path, request, several):
    if several == 3:
        request.getfixturevalue("worker_threads")
    digests = {}
    for workers in (0, several):
        out = tmp_path / str(workers)
        summary = build_kd_shard(harmony, out, KDConfig(vocabulary, 0.2, workers=workers))
        digests[workers] = (hashes(out), summary)
    request.getfixturevalue("monkeypatch").setattr(kd_shard, "_PART_ROWS", 4096)
    summary = kd_build(harmony, "one", 0.2)
    digests[1] = (hashes(tmp_path / "one"), summary)
    assert all(each == digests[0] for each in digests.values())


@pytest.mark.parametrize("fraction", [0, 1])
def test_a_split_without_documents_has_no_files(harmony, kd_build, tmp_path, fraction):
    kd_build(harmony, "out", fraction)
    present, absent = ("valid", "train") if fraction else ("train", "valid")
    assert not (tmp_path / "out" / absent).exists()
    assert len(list((tmp_path / "out" / present).iterdir())) == 6
    assert list(kd_laws(tmp_path / "out", "00", fraction)) == []


def test_a_shard_without_rows_is_refused(write_rows, kd_build):
    with pytest.raises(BadInput, match=r"shard_07\.parquet: has no rows: give the shard a row"):
        kd_build(write_rows([]), "out")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("rows", [0, 1, 20, 21, 39, 10_000])
def test_a_cap_on_rows_takes_the_first_rows(harmony, vocabulary, tmp_path, rows):
    config = KDConfig(vocabulary, 0.2, max_rows=rows, workers=4)
    summary = build_kd_shard(harmony, tmp_path / "out", config)
    there = pq.ParquetFile(harmony).metadata.num_rows
    assert summary.train_rows + summary.valid_rows == min(rows, there)
    table = pq.read_table(tmp_path / "out" / trace.path("00"))
    assert sorted(table["row"].to_pylist()) == list(range(1, min(rows, there) + 1))
    assert list(kd_laws(tmp_path / "out", "00")) == []


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tokens of each call that renders documents of a split."""
    calls: list[int] = []
    real = documents.assemble

    def counted(*args: Any) -> documents.Documents:
        made = real(*args)
        calls.append(len(made.tokens))
        return made

    monkeypatch.setattr(documents, "assemble", counted)
    return calls


def _documents_of_one_split(
    shard: Path, vocabulary: Path, out: Path
) -> tuple[list[int], list[int]]:
    """Lengths of all documents, and their input rows."""
    build_kd_shard(shard, out, KDConfig(vocabulary, 0.0))
    lengths = megatron.read(next(out.glob("train/*_tokens.idx")).with_suffix("")).lengths
    return lengths.tolist(), pq.read_table(next(out.glob("trace/*")))["row"].to_pylist()


@pytest.fixture(scope="module")
def lengths(harmony: Path, vocabulary: Path, tmp_path_factory: Any) -> list[int]:
    """Tokens of each row of the shard."""
    return _documents_of_one_split(harmony, vocabulary, tmp_path_factory.mktemp("all") / "kd")[0]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("cap", [0, 1, 109, 5000, 9_999, 10**9])
def test_a_cap_on_tokens_stops_before_it(harmony, vocabulary, tmp_path, cap, lengths, rendered):
    before = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    for fraction in (0.0, 0.5):
        out = tmp_path / f"out_{fraction}"
        summary = build_kd_shard(harmony, out, KDConfig(vocabulary, fraction, max_tokens=cap))
        assert summary.rows == int((before < cap).sum())
        assert pq.read_table(out / trace.path("00"))["row"].to_pylist() == list(
            range(1, summary.rows + 1)
        )
        kept = summary.train_tokens + summary.valid_tokens
        assert kept == sum(lengths[: summary.rows])
        assert sum(rendered) <= 2 * kept
        rendered.clear()
        assert list(kd_laws(out, "00")) == []


def test_a_capped_build_renders_few_tokens_more(write_rows, vocabulary, tmp_path, rendered):
    """Also where rows after the first ones are longer, or have a token for each byte."""
    texts = ["a b" * 20] * 200 + ["a b" * 400] * 100 + ["%$" * 200] * 100 + ["x"] * 400
    rows = [(f"id{n}", as_json(conversation(text, "b", "c"))) for n, text in enumerate(texts)]
    shard = write_rows(rows)
    lengths, _ = _documents_of_one_split(shard, vocabulary, tmp_path / "all")
    for cap in (500, 20_000, 60_000, sum(lengths) - 1):
        rendered.clear()
        config = KDConfig(vocabulary, 0.0, max_tokens=cap)
        summary = build_kd_shard(shard, tmp_path / f"{cap}", config)
        assert summary.train_tokens - lengths[summary.rows - 1] < cap <= summary.train_tokens
        assert sum(rendered) <= 2 * summary.train_tokens
        assert len(rendered) / 2 <= 12 + summary.rows / 100


def test_refused_rows_after_a_cap_on_tokens_are_not_read(write_rows, vocabulary, tmp_path):
    rows = [(name, "{" if name in "bdg" else GOOD) for name in "abcdefg"]
    shard = write_rows(rows)
    lengths, places = _documents_of_one_split(
        write_rows([row for row in rows if row[1] == GOOD]), vocabulary, tmp_path / "good"
    )
    assert places == [1, 2, 3, 4]
    shard = write_rows(rows)
    # Documents, and the refused rows before the last of them.
    for kept, refused in ((1, 0), (2, 1), (3, 2), (4, 2)):
        cap = sum(lengths[:kept])
        config = KDConfig(vocabulary, 0.5, max_tokens=cap, bad_rows=refused)
        summary = build_kd_shard(shard, tmp_path / f"{kept}", config)
        assert (summary.rows, summary.bad_rows) == (kept, refused)
    config = KDConfig(vocabulary, 0.5, max_tokens=cap + 1, bad_rows=2)
    with pytest.raises(BadInput, match="bad_rows = 3` below"):
        build_kd_shard(shard, tmp_path / "more", config)


def test_rows_set_aside_do_not_count_towards_a_cap(write_rows, vocabulary, tmp_path):
    rows = [(name, "{" if name in "bc" else GOOD) for name in "abcdef"] + [("g", "{")]
    config = KDConfig(vocabulary, max_rows=4, bad_rows=2)
    summary = build_kd_shard(write_rows(rows), tmp_path / "out", config)
    assert (summary.rows, summary.bad_rows) == (4, 2)
    table = pq.read_table(tmp_path / "out" / trace.path("07"))
    assert table["synth_id"].to_pylist() == ["a", "d", "e", "f"]


@pytest.mark.parametrize(("caps", "batches"), [({"max_rows": 33}, 2), ({"max_tokens": 1}, 1)])
@pytest.mark.usefixtures("small_parts")
def test_a_cap_on_rows_is_reached_in_batches(harmony, kd_build, caps, batches, monkeypatch):
    made: list[int] = []
    plain = kd_part.Part._batch

    def counted(part: Any, batch: pa.RecordBatch, first_row: int) -> Any:
        made.append(len(batch))
        return plain(part, batch, first_row)

    monkeypatch.setattr(kd_part.Part, "_batch", counted)
    summary = kd_build(harmony, "out", **caps)
    assert len(made) == batches
    assert sum(made) == summary.rows == caps.get("max_rows", 1)


@pytest.mark.parametrize(("bad_rows", "caps"), [(0, {}), (3, {"max_rows": 1}), (99, {})])
def test_a_shard_without_a_good_row_always_fails(write_rows, vocabulary, tmp_path, bad_rows, caps):
    shard = write_rows([(name, "{") for name in "abc"])
    config = KDConfig(vocabulary, bad_rows=bad_rows, **caps)
    with pytest.raises(BadInput, match=r"07\.parquet:1: none of 3 rows can be rendered: "):
        build_kd_shard(shard, tmp_path / "out", config)


THOUGHT = as_json(
    [message("user", "q"), message("assistant", "4", channel="final", thinking="2+2")]
)
CALL = as_json([*conversation("q", "a", "f"), message("user", "x", tool_calls=[{"name": "f"}])])


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_keys_that_are_not_rendered_are_counted_by_name(write_rows, vocabulary, tmp_path, workers):
    texts = {1: THOUGHT, 22: THOUGHT, 23: CALL, 45: CALL, 46: THOUGHT}
    shard = write_rows([(f"id{n}", texts.get(n, GOOD)) for n in range(50)], row_group_size=10)
    config = KDConfig(vocabulary, 0.5, workers=workers)
    summary = build_kd_shard(shard, tmp_path / "out", config)
    assert summary.unknown_keys == {"thinking": 3, "tool_calls": 2}
    assert counts_of(summary)["unknown_keys/thinking"] == 3
    assert (summary.rows, summary.bad_rows) == (50, 0)
    capped = build_kd_shard(shard, tmp_path / "capped", replace(config, max_rows=23))
    assert capped.unknown_keys == {"thinking": 2}
    lengths = megatron.read(tmp_path / "capped/train/shard_07_tokens").lengths
    tokens = replace(config, valid_fraction=0.0, max_tokens=int(lengths[0]))
    few = build_kd_shard(shard, tmp_path / "few", tokens)
    assert (few.rows, few.unknown_keys) == (1, {})


def test_rows_with_other_keys_are_refused_by_the_setting(write_rows, vocabulary, tmp_path):
    shard = write_rows([("a", GOOD), ("b", THOUGHT), ("c", CALL)])
    config = KDConfig(vocabulary, unknown_keys="refuse")
    rule = (
        "ValueError: a message has keys that are not rendered ('thinking'): make a message of "
        'what they hold, remove them, or set unknown_keys to "count"'
    )
    with pytest.raises(BadInput) as caught:
        build_kd_shard(shard, tmp_path / "out", config)
    assert caught.value.row == 2
    assert f"\n  row 2, synth_id 'b': {rule}\n" in caught.value.rule
    summary = build_kd_shard(shard, tmp_path / "aside", replace(config, bad_rows=2))
    assert (summary.rows, summary.bad_rows, summary.unknown_keys) == (1, 2, {})
    lines = (tmp_path / "aside/quarantine/quarantine_07.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"shard": "07", "row": 2, "synth_id": "b", "rule": rule}
    assert "('tool_calls')" in lines[1]


TWICE = GOOD.replace('{"role": "user"', '{"role": "system", "role": "user"')


@pytest.mark.parametrize(
    ("text", "metadata", "rule"),
    [
        (TWICE, None, "ValueError: the key 'role' is twice in one object: remove one of them"),
        (GOOD.replace("{", '{"x": NaN, ', 1), None, "ValueError: NaN is not JSON: write null or a"),
        (GOOD.replace("{", '{"messages" : [], ', 1), None, "ValueError: the key 'messages' is twi"),
        (GOOD + " {}", None, "JSONDecodeError: Extra data"),
        (GOOD, '{"a": NaN}', "ValueError: metadata_json: NaN is not JSON"),
        (GOOD, '{"a": 1, "a": 1}', "ValueError: metadata_json: the key 'a' is twice in one object"),
        (GOOD, '{"b": {"a" : 1, "a" : 1}}', "ValueError: metadata_json: the key 'a' is twice"),
        (GOOD, '{"a": 1}}', "JSONDecodeError: metadata_json: Extra data"),
        (GOOD, "[" * 100_000, "RecursionError: metadata_json: "),
        (GOOD, '{"b": {"c": 1}, "a": ": "}', None),
        (GOOD, None, None),
    ],
)
def test_a_row_that_is_not_strict_json_is_refused(tmp_path, kd_build, text, metadata, rule):
    texts = [GOOD, GOOD, text, GOOD]
    columns = {
        "messages_json": pa.array(texts, pa.large_string()),
        "metadata_json": ["{}", None, metadata, '{"a": "é"}'],
        "synth_id": pa.array([0, 1, 2, 3]),
    }
    shard = tmp_path / "synth_harmony_shard_07.parquet"
    pq.write_table(pa.table(columns), shard)
    summary = kd_build(shard, "out", bad_rows=1)
    assert summary.bad_rows == (rule is not None)
    if rule is not None:
        line = (tmp_path / "out/quarantine/quarantine_07.jsonl").read_text()
        assert (json.loads(line)["row"], json.loads(line)["synth_id"]) == (3, "2")
        assert json.loads(line)["rule"].startswith(rule)
        table = pq.read_table(tmp_path / "out" / trace.path("07"))
        assert table["row"].to_pylist() == [1, 2, 4]


def test_metadata_that_nothing_can_read_does_not_matter(tmp_path, kd_build):
    columns = {"messages_json": [GOOD], "metadata_json": [b"\xff"], "synth_id": ["a"]}
    shard = tmp_path / "synth_harmony_shard_07.parquet"
    pq.write_table(pa.table(columns), shard)
    assert kd_build(shard, "out").rows == 1


def test_a_row_that_the_build_refuses_is_not_shown(write_rows, vocabulary):
    shard = write_rows([("a", TWICE)])
    with pytest.raises(BadInput, match=r"07\.parquet:1: synth_id 'a': the key 'role' is twice"):
        show.harmony_row(shard, 0, {"messages_json": TWICE, "synth_id": "a"}, vocabulary)


@pytest.mark.parametrize(
    ("synth_id", "text", "rule"),
    [
        ("bad", "{", "JSONDecodeError"),
        ("bad", as_json([message("tool", "x")]), "Unsupported role: tool"),
        ("bad", None, "Missing synth_id or messages_json in input row."),
        (None, GOOD, "Missing synth_id or messages_json in input row."),
        ("", GOOD, "Missing synth_id or messages_json in input row."),
        (" \t", GOOD, "Missing synth_id or messages_json in input row."),
    ],
)
def test_the_first_bad_row_fails_the_build(write_rows, kd_build, synth_id, text, rule):
    shard = write_rows([("a", GOOD), (synth_id, text)])
    with pytest.raises(BadInput) as caught:
        kd_build(shard, "out")
    assert (caught.value.file, caught.value.row) == (str(shard), 2)
    assert rule in caught.value.rule
    assert f"synth_id {synth_id!r}" in caught.value.rule


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_bad_rows_are_set_aside_within_their_bound(write_rows, vocabulary, tmp_path, workers):
    rows = [(f"id{n}", "{" if n in (3, 25) else GOOD) for n in range(50)]
    shard = write_rows(rows, row_group_size=10)
    config = KDConfig(vocabulary, 0.5, bad_rows=2, workers=workers)
    summary = build_kd_shard(shard, tmp_path / "out", config)
    assert summary.bad_rows == 2
    assert summary.train_rows + summary.valid_rows == 48
    lines = (tmp_path / "out/quarantine/quarantine_07.jsonl").read_text().splitlines()
    assert [(json.loads(x)["row"], json.loads(x)["synth_id"]) for x in lines] == [
        (4, "id3"),
        (26, "id25"),
    ]
    assert list(kd_laws(tmp_path / "out", "07")) == []
    with pytest.raises(BadInput, match="row 26, synth_id 'id25'"):
        config = KDConfig(vocabulary, 0.5, bad_rows=1, workers=workers)
        build_kd_shard(shard, tmp_path / "bounded", config)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_failed_build_names_bad_rows_and_keeps_parts(write_rows, vocabulary, tmp_path, workers):
    rows = [(f"id{n}", "{" if n < 23 else GOOD) for n in range(23 + 60)]
    shard, folder = write_rows(rows[::-1], row_group_size=10), tmp_path / "parts"
    folder.mkdir()
    with pytest.raises(BadInput) as caught:
        config = KDConfig(vocabulary, 0.5, workers=workers)
        build_kd_shard(shard, tmp_path / "failed", config, PartStore(folder))
    assert (caught.value.file, caught.value.row) == (str(shard), 61)
    first, *lines = caught.value.rule.splitlines()
    assert first.startswith("23 rows cannot be rendered: correct them, or set")
    assert "`bad_rows = 23` below [synth.kd_shards], " in first
    assert lines[-1] == "  and 3 more of the 23 rows"
    assert [line.split(":")[0] for line in lines[:-1]] == [
        f"  row {61 + n}, synth_id 'id{22 - n}'" for n in range(20)
    ]
    kept = {path.name: path.stat().st_ino for path in folder.iterdir()}
    assert len(kept) == 2 * 5
    config = KDConfig(vocabulary, 0.5, bad_rows=23, workers=workers)
    summary = build_kd_shard(shard, tmp_path / "out", config, PartStore(folder))
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == kept
    assert (summary.rows, summary.bad_rows) == (60, 23)
    fresh = build_kd_shard(shard, tmp_path / "fresh", config)
    assert (hashes(tmp_path / "out"), summary) == (hashes(tmp_path / "fresh"), fresh)
    quarantined = (tmp_path / "out/quarantine/quarantine_07.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in quarantined] == list(range(61, 84))


@pytest.mark.usefixtures("small_parts")
def test_parts_are_counted_after_too_many_bad_rows(write_rows, vocabulary, tmp_path, monkeypatch):
    """Bad rows are in the third part and in the fifth one."""
    read: list[str] = []
    real = kd_part.read

    def noted(path: Path) -> Any:
        read.append(path.stem)
        yield from real(path)

    monkeypatch.setattr(kd_part, "read", noted)
    rows = [(f"id{n}", "{" if n in (45, 90) else GOOD) for n in range(100)]
    shard = write_rows(rows, row_group_size=10)
    with pytest.raises(BadInput, match="2 rows cannot be rendered"):
        build_kd_shard(shard, tmp_path / "out", KDConfig(vocabulary), PartStore(tmp_path))
    assert [name.removesuffix(".part")[-1] for name in read] == ["0", "1"]


@pytest.mark.usefixtures("small_parts")
def test_the_error_counts_bad_rows_before_a_cap(write_rows, kd_build, vocabulary, tmp_path):
    lengths, _ = _documents_of_one_split(write_rows([("a", GOOD)]), vocabulary, tmp_path / "one")
    rows = [(f"id{n}", GOOD if n % 3 == 0 else "{") for n in range(90)]
    shard = write_rows(rows, row_group_size=10)
    caps: dict[str, int]
    for caps in ({"max_rows": 10}, {"max_tokens": 10 * lengths[0]}):
        with pytest.raises(BadInput, match=r"^[^ ]*:2: 18 rows .* by `bad_rows = 18` below"):
            kd_build(shard, f"{caps}", **caps)
        config = KDConfig(vocabulary, bad_rows=18, **caps)
        assert build_kd_shard(shard, tmp_path / f"all_{caps}", config).rows == 10


def test_the_summary_of_a_part_stays_small_always(write_rows, kd_build, vocabulary, tmp_path):
    role = as_json([message("x" * 5000, "y")])
    shard = write_rows([("n" * 5000, role)] * 100 + [("good", GOOD)])
    task = next(kd_shard._tasks(shard, KDConfig(vocabulary), True))
    summary = kd_part.make_part(kd_part.Part, task, tmp_path / "part")
    assert summary["bad_rows"] == 100
    assert len(summary["first_bad_rows"]) == quarantine.MOST_NAMED
    assert len(json.dumps(summary)) < 40_000
    with pytest.raises(BadInput) as caught:
        kd_build(shard, "failed")
    assert len(str(caught.value)) < 8_000
    summary = kd_build(shard, "out", bad_rows=100)
    lines = (tmp_path / "out/quarantine/quarantine_07.jsonl").read_text().splitlines()
    assert len(lines) == summary.files["quarantine/quarantine_07.jsonl"].rows == 100
    entry = json.loads(lines[-1])
    assert list(entry) == ["shard", "row", "synth_id", "rule"]
    assert entry["synth_id"] == "n" * 5000
    assert entry["rule"].endswith(f"Unsupported role: {'x' * 5000}")


def test_shard_numbers():
    assert shard_number(Path("synth_harmony_shard_3.parquet")) == "03"
    with pytest.raises(BadInput, match="shard_<number>"):
        shard_number(Path("part-0.parquet"))


def test_a_text_that_cannot_be_encoded_is_a_bad_row(write_rows, kd_build, tmp_path):
    """A million spaces: no engine takes them, openai-harmony panics, neither names the row."""
    spaces = " " * 1_000_000 + "x"
    by_harmony = [message("user", spaces, name="bob"), *conversation("q", "a", "f")]
    rows = [(name, GOOD) for name in "abcdef"]
    rows[1] = ("b", as_json(conversation("<|end|>" + spaces, "a", "f")))
    rows[3] = ("d", as_json(by_harmony))
    rows[4] = ("e", "{")
    shard = write_rows(rows)
    with pytest.raises(BadInput, match=r"shard_07\.parquet:2: 3 rows .*\n  row 2, synth_id 'b'"):
        kd_build(shard, "strict")
    summary = kd_build(shard, "out", bad_rows=3)
    assert (summary.rows, summary.bad_rows, summary.control_texts) == (3, 3, 0)
    lines = (tmp_path / "out/quarantine/quarantine_07.jsonl").read_text().splitlines()
    refused = [(json.loads(line)["row"], json.loads(line)["rule"]) for line in lines]
    assert [row for row, _ in refused] == [2, 4, 5]
    assert "openai-harmony gave up" in refused[1][1]
    assert list(kd_laws(tmp_path / "out", "07")) == []
    table = pq.read_table(tmp_path / "out" / trace.path("07"))
    assert table["row"].to_pylist() == [1, 3, 6]


def test_without_its_vocabulary_a_build_writes_nothing(harmony, tmp_path):
    absent, other = tmp_path / "absent", tmp_path / "other"
    other.write_bytes(b"IQ== 0\n")
    with pytest.raises(BadInput, match=r"absent: the vocabulary cannot be read \(No such file"):
        build_kd_shard(harmony, tmp_path / "out", KDConfig(absent))
    with pytest.raises(BadInput, match=r"other: is not o200k_base\.tiktoken: sha256"):
        build_kd_shard(harmony, tmp_path / "out", KDConfig(other))
    assert not (tmp_path / "out").exists()


def test_a_value_that_has_no_text_form_is_bad_input(harmony, kd_build, tmp_path):
    table = pq.read_table(harmony, columns=["messages_json", "synth_id"]).slice(0, 5)
    path = tmp_path / "synth_harmony_shard_07.parquet"
    times = pa.array([1] * 5, pa.timestamp("us", "Nowhere/City"))
    pq.write_table(table.append_column("language", times), path)
    with pytest.raises(BadInput, match=r"shard_07\.parquet:1: holds a value that has no text"):
        kd_build(path, "out")
    numbers = pa.array([2**62] * 5, pa.timestamp("us"))
    pq.write_table(table.append_column("language", numbers), path)
    summary = kd_build(path, "fine")
    assert summary.rows == 5


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_kd_shard_reports_rows_part_by_part(harmony, vocabulary, tmp_path, monkeypatch, workers):
    monkeypatch.setattr(kd_shard, "_PART_ROWS", 20)
    reports: list[Report] = []
    config = KDConfig(vocabulary, 0.2, workers=workers)
    build_kd_shard(harmony, tmp_path / "out", config, progress=Progress(reports.append, 0.0))
    rows = pq.read_metadata(harmony).num_rows
    done = [report.done for report in reports]
    assert done == [*range(0, rows, 20), rows]
    assert reports[-1] == Report("render", rows, rows, "rows")


def test_a_capped_kd_shard_does_not_know_how_many_rows_it_takes(harmony, vocabulary, tmp_path):
    reports: list[Report] = []
    config = KDConfig(vocabulary, 0.2, max_rows=7)
    build_kd_shard(harmony, tmp_path / "out", config, progress=Progress(reports.append, 0.0))
    assert reports[-2:] == [Report("render", 7, None, "rows"), Report("render", 7, 7, "rows")]

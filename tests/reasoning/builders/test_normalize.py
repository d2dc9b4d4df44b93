"""Raw files to normalised files: bytes, origins, refused records, real data."""

import hashlib
import json
import math
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, NothingToBuild, counts_of
from gristmill.corpora.raw import rows as read_rows
from gristmill.families import kind_of_asset
from gristmill.reasoning.builders import normalize as normalized
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.config import CorpusConfig, NormalizeConfig
from gristmill.reasoning.format.index import mapped
from gristmill.untrusted.limits import LIMITS
from tests.paths import REAL_DATA
from tests.reasoning.drops import built, packed, text_of, write

GSM8K_TEST = "4cef33a7737174083116224c95e3502b8e3a9a5fe85cb3c545f8a48cc22ab1f9"
"""Of the file that the earlier implementation published."""
REAL = REAL_DATA / "reasoning"
needs_real_data = pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}")
ROW = {"question": "q", "answer": "a"}
_END = "</think>"


def _linked(drop: Path, *files: str) -> Path:
    drop.mkdir()
    for file in files:
        (drop / Path(file).name).write_bytes((REAL / file).read_bytes())
    return drop


@needs_real_data
def test_gsm8k_test_has_the_bytes_of_the_earlier_implementation(tmp_path):
    drop = _linked(tmp_path / "gsm8k", "gsm8k/test.jsonl")
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(), split="test")
    octets = (tmp_path / "out/gsm8k/test.jsonl").read_bytes()
    assert hashlib.sha256(octets).hexdigest() == GSM8K_TEST
    note = summary.files["gsm8k/test.jsonl"]
    assert (note.sha256, note.bytes, note.rows) == (GSM8K_TEST, len(octets), 1319)
    assert summary.shapes == {"seed": 1319}
    origins = mapped(tmp_path / "out/origins/gsm8k__test.npy")
    assert (origins == [[0, row] for row in range(1, 1320)]).all()
    assert not (tmp_path / "out/rejected").exists()


@needs_real_data
def test_flan_tables_become_cot_collection(tmp_path):
    names = ("aqua", "ecqa", "qasc", "strategyqa")
    drop = _linked(tmp_path / "cot_collection", *[f"flan_cot/{n}_train.tsv" for n in names])
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(), split="train")
    assert (summary.records, summary.with_cot, summary.rejected) == (12_985, 12_985, 0)
    lines = (tmp_path / "out/cot_collection/train.jsonl").read_text().splitlines()
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    assert first["question"].endswith("?\nOptions:\n(A) 300\n(B) 992\n(C) 1120\n(D) 552\n(E) 312")
    assert first["cot"].split("\n")[0] == "1/7:1/7:1/14 = 2:2:1"
    assert (first["dataset"], last["dataset"], last["source"]) == ("aqua", "strategyqa", None)
    origins = mapped(tmp_path / "out/origins/cot_collection__train.npy")
    assert origins[-1].tolist() == [3, 2061]


@needs_real_data
def test_both_halves_of_gsm8k_backward_are_read(tmp_path):
    drop = _linked(tmp_path / "reasoning_traces", "metamath/GSM8K_Backward.jsonl")
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(), split="train")
    assert (summary.records, summary.with_cot) == (1270, 1270)
    assert summary.shapes == {"backward": 1270}
    lines = (tmp_path / "out/reasoning_traces/train.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["cot"].startswith("Let's think step by step.\n")
    assert json.loads(lines[255])["cot"].endswith("The value of x is 15.\n#### 15")
    assert json.loads(lines[255])["answer"] == "15"


@needs_real_data
def test_flat_and_nested_wiqa_are_read(tmp_path):
    drop = _linked(tmp_path / "wiqa", "wiqa/wiqa_hf_flat_1.jsonl", "wiqa/wiqa_raw_nested_2.jsonl")
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(), split="train")
    assert summary.shapes == {"public": 1, "nested": 2}
    record = json.loads((tmp_path / "out/wiqa/train.jsonl").read_text().splitlines()[0])
    assert record["perturbation"] == "the female is sterile"
    assert (record["effect1"], record["effect2"]) == ("LESS rabbits", None)
    assert record["cot"] == "\n".join(record["cot_steps"]) and len(record["cot_steps"]) == 6


@pytest.mark.parametrize(
    "name",
    [
        *(f"train.{ending}" for ending in ("jsonl", "ndjson", "json", "parquet", "csv", "tsv")),
        *(f"train.jsonl.{packing}" for packing in ("gz", "bz2", "xz", "zst")),
        "train.csv.gz",
        "TRAIN.JSONL",
    ],
)
def test_every_format_gives_the_same_file(tmp_path, name):
    rows = [
        {"question": 'ä "q"\n,\ttab', "answer": "1\n2"},
        {"question": "\u2028x", "answer": "\x7f\x01"},
    ]
    write(tmp_path / "gsm8k", name, rows)
    normalize(tmp_path / "gsm8k", tmp_path / "out", NormalizeConfig(), split="train")
    expected = "".join(
        json.dumps({**row, "cot": None, "source_dataset": "gsm8k"}, ensure_ascii=False) + "\n"
        for row in rows
    )
    assert (tmp_path / "out/gsm8k/train.jsonl").read_bytes() == expected.encode()
    origins = mapped(tmp_path / "out/origins/gsm8k__train.npy")
    assert origins.tolist() == [[0, 1], [0, 2]]


def test_line_endings_are_absorbed_and_missing_columns_are_named(tmp_path):
    plain, _ = built(tmp_path / "1", "gsm8k", [{"question": "a\nb\n\nc", "answer": "d\ne"}])
    other, _ = built(
        tmp_path / "2",
        "gsm8k",
        b"\xef\xbb\xbf" + text_of([{"question": "\ufeffa\r\nb\r\rc", "answer": "d\re"}], "jsonl"),
    )
    assert other == plain
    drop = write(
        tmp_path / "openr1_math_220k", "train.parquet", [{"prompt": "p", "uuid": "1"}]
    ).parent
    rule = "lacks the column response, and chain_of_thought too; has the columns prompt, uuid"
    with pytest.raises(BadInput, match=rule):
        normalize(drop, tmp_path / "out", NormalizeConfig(), split="train")


def test_origins_name_file_and_row_and_skip_what_gives_no_record(tmp_path):
    drop = tmp_path / "gsm8k"
    write(drop, "train-00001-of-00002.jsonl", [ROW, ROW])
    write(drop, "train-00000-of-00002.jsonl", b'\n\n{"x": 1}\n' + text_of([ROW], "jsonl"))
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(bad_rows=1), split="train")
    origins = np.load(tmp_path / "out/origins/gsm8k__train.npy")
    assert origins.dtype == np.int64
    assert origins.tolist() == [[0, 4], [1, 1], [1, 2]]
    assert summary.files["origins/gsm8k__train.npy"].rows == 3
    assert [json.loads(line) for line in (tmp_path / "out/rejected/gsm8k__train.jsonl").open()] == [
        {
            "reason": "shape",
            "file": "train-00000-of-00002.jsonl",
            "row": 3,
            "rule": "has the columns x; the known forms of gsm8k are seed (question)",
        }
    ]


def test_files_in_folders_are_read_in_the_order_of_their_paths_and_named_by_them(tmp_path):
    drop = tmp_path / "gsm8k"
    for name, answer in (("train_a/0.jsonl", "1"), ("train/1.jsonl", "2"), ("test/0.jsonl", "3")):
        (drop / name).parent.mkdir(parents=True)
        row = {**ROW, "answer": answer}
        write(drop / name.partition("/")[0], name.partition("/")[2], [row, {"x": 1}])
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(bad_rows=2), split="train")
    lines = (tmp_path / "out/gsm8k/train.jsonl").read_text().splitlines()
    assert [json.loads(line)["answer"] for line in lines] == ["2", "1"]
    assert mapped(tmp_path / "out/origins/gsm8k__train.npy").tolist() == [[0, 1], [1, 1]]
    refused = (tmp_path / "out/rejected/gsm8k__train.jsonl").read_text().splitlines()
    places = [(entry["file"], entry["row"]) for entry in map(json.loads, refused)]
    assert places == [("train/1.jsonl", 2), ("train_a/0.jsonl", 2)]
    assert summary.rejected_by == {"shape": 2}
    with pytest.raises(
        BadInput, match=r"gsm8k/train/1\.jsonl:2: 2 records are refused .*"
    ) as error:
        normalize(drop, tmp_path / "none", NormalizeConfig(bad_rows=1), split="train")
    assert "\n  train_a/0.jsonl:2: has the columns x;" in str(error.value)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"{", "json"),
        (b'{"question": "a", "answer": ' + b"[" * 300 + b"]" * 300 + b"}", "json"),
        (b'{"question": "a", "answer": ' + b"1" * 500 + b"}", "json"),
        (b"\xff", "utf8"),
        (b"[1]", "object"),
        (b'"x"', "object"),
        (b'{"prompt": "a"}', "shape"),
        (b'{"question": " ", "answer": "a"}', "question"),
        (b'{"question": null, "answer": "a"}', "question"),
        (b'{"question": "a", "answer": "\\n"}', "answer"),
        (b'{"question": "a"}', "answer"),
        (b'{"question": "a\\ud800", "answer": "b"}', "surrogate"),
        (b'{"question": "a", "answer": NaN}', "number"),
        (b'{"question": "a", "answer": 1e999}', "number"),
        (b'{"question": "a' + b" " * 100_001 + b'b", "answer": "b"}', "white_space"),
    ],
)
def test_a_refused_record_is_set_aside_with_its_reason(tmp_path, row, reason):
    raw = text_of([ROW], "jsonl") + row + b"\n"
    records, summary = built(tmp_path, "gsm8k", raw, bad_rows=1)
    assert len(records) == summary.records == 1
    assert counts_of(summary)[f"rejected_by/{reason}"] == summary.rejected == 1
    assert summary.files["rejected/gsm8k__train.jsonl"].rows == 1


def test_a_chain_without_an_answer_is_kept_and_reveal_needs_evidence(tmp_path):
    rows = [{"question": "q", "answer": "", "rationale": "c"}, ROW | {"context": " "}]
    rows[0]["citation"] = "page 3"
    records, summary = built(tmp_path, "reveal", rows)
    assert [record["cot"] for record in records] == ["c"]
    assert (summary.rejected, summary.rejected_by, summary.left_out_by) == (1, {}, {"evidence": 1})
    assert (tmp_path / "out/rejected/reveal__train.jsonl").read_text() == (
        '{"reason": "evidence", "file": "train.jsonl", "row": 2, '
        '"rule": "it has neither context nor citation"}\n'
    )


def test_numbers_that_are_not_finite_are_refused_in_parquet_where_they_are_read(tmp_path):
    rows = [
        {"question": "q", "answer": math.nan, "unused": 1.0},
        {"question": "q", "answer": -math.inf, "unused": 1.0},
        {"question": "q", "answer": 0.5, "unused": math.nan},
    ]
    drop = write(tmp_path / "gsm8k", "train.parquet", rows).parent
    summary = normalize(drop, tmp_path / "out", NormalizeConfig(bad_rows=2), split="train")
    assert (summary.records, summary.rejected_by) == (1, {"number": 2})
    assert mapped(tmp_path / "out/origins/gsm8k__train.npy").tolist() == [[0, 3]]


def test_too_many_refused_records_fail_the_build_and_are_named(tmp_path):
    with pytest.raises(BadInput, match=r"train\.jsonl:2: has the columns x") as one:
        built(tmp_path, "gsm8k", text_of([ROW, {"x": 1}], "jsonl"))
    place = f"below [reasoning.normalized] in {tmp_path}/gsm8k/gristmill.toml"
    assert f"aside by `bad_rows = 1` {place}; it is 0" in str(one.value)
    with pytest.raises(BadInput) as escaped:
        built(tmp_path / "escape", "gsm8k", b'{"\\u001b[31m\\ud800": 1}\n')
    assert str(escaped.value).isprintable()
    rows: list[dict[str, Any]] = [ROW] + [{"x": 1}] * 30
    with pytest.raises(BadInput) as error:
        built(tmp_path / "many", "gsm8k", rows, bad_rows=29)
    assert "30 records are refused (30 shape)" in str(error.value)
    assert "by `bad_rows = 30` below" in str(error.value) and "; it is 29" in str(error.value)
    assert "and 10 more" in str(error.value)


@pytest.mark.parametrize("count", [1, 30])
def test_a_file_of_which_all_records_are_refused_fails(tmp_path, count):
    rows: list[dict[str, Any]] = [{"Question": "q", "Answer": "a"}] * count
    with pytest.raises(BadInput) as error:
        built(tmp_path, "gsm8k", rows, bad_rows=1000)
    text = str(error.value)
    assert "has the columns Question, Answer; the known forms of gsm8k are seed (question)" in text
    assert "no row of the file is good: correct the file, or take it out" in text
    assert "bad_rows" not in text
    assert count == 1 or "30 records are refused (30 shape)" in text


def test_rows_whose_thought_has_no_end_are_kept_and_counted(tmp_path):
    table = {"name": "mine", "files": {"train": "*"}, "question": "q", "answer": "a"}
    texts = ["<think>t</think>", "<think>cut", "no mark", "", None, "<think></think>"]
    write(tmp_path / "mine", "train.jsonl", [{"q": "q", "a": "a", "g": text} for text in texts])
    config = CorpusConfig(corpus=json.dumps(table | {"schema": 1, "cot": {"think": "g"}}))
    made = normalize(tmp_path / "mine", tmp_path / "out", config, split="train")
    assert (made.records, made.with_cot) == (6, 1)
    assert made.without_cot_by == {"think:g": 2}
    kind = kind_of_asset("reasoning/normalized")
    assert kind is not None
    assert kind.set_aside_of(counts_of(made)) == {"kept without cot": {"think:g": 2}}


@pytest.mark.parametrize(
    "thinking", [{"think": "g"}, {"column": "g", "between": ["<think>", _END]}]
)
def test_a_text_outside_of_thought_and_answer_is_counted(tmp_path, thinking):
    answers = ["<a>4</a>", " Let us see: <a>4</a>", "\n<a>4</a>\n", "<a>4</a> So it is.", ""]
    rows = [{"q": "q", "g": f"<think>t 4{_END}{each}"} for each in answers]
    write(tmp_path / "mine", "train.jsonl", rows)
    cut = {"column": "g", "between": ["<a>", "</a>"], "which": "last"}
    table = {"schema": 1, "name": "mine", "question": "q", "cot": thinking}
    for at, (answer, unread) in enumerate(
        [(cut, {"g": 2}), ({"column": "g", "after": _END}, {}), ("g", {})]
    ):
        config = CorpusConfig(corpus=json.dumps(table | {"answer": answer}))
        made = normalize(tmp_path / "mine", tmp_path / f"out{at}", config, split="train")
        assert (made.records, made.part_unread_by) == (5, unread)


def _two(tmp_path: Path, second: bytes, name: str = "train-1.jsonl", **config: Any) -> str:
    """What is said of a split with a good file and another one."""
    write(tmp_path / "gsm8k", "train-0.jsonl", [ROW] * 300)
    (tmp_path / "gsm8k" / name).write_bytes(second)
    with pytest.raises(BadInput) as error:
        normalize(tmp_path / "gsm8k", tmp_path / "out", NormalizeConfig(**config), split="train")
    return str(error.value).removeprefix(f"{tmp_path}/gsm8k/")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (
            text_of([{"problem": "p", "solution": "s"}], "jsonl"),
            "train-1.jsonl:1: has the columns problem, solution; the known forms of gsm8k are seed "
            "(question) (no row of the file is good: correct the file, or take it out)",
        ),
        (
            text_of([{"problem": "p"}] * 25, "jsonl"),
            "train-1.jsonl:1: 25 records are refused (25 shape): no row of the file is good: "
            "correct the file, or take it out:\n  train-1.jsonl:1: has the columns problem; ",
        ),
        (
            text_of([{"question": "", "answer": None}] * 2, "jsonl"),
            "train-1.jsonl: has 2 records, all without a text: no row of the file is good: correct",
        ),
        (
            text_of([{"question": "q", "solution": "s"}], "jsonl"),
            "train-1.jsonl:1: lacks the column answer; has the columns question, solution (no",
        ),
        (b"version https://git-lfs.github.com/spec/v1\nsize 4\n", "train-1.jsonl: is a Git LFS "),
    ],
)
def test_a_file_without_a_good_row_fails_whatever_is_tolerated(tmp_path, second, said):
    assert _two(tmp_path, second, bad_rows=10**6).startswith(said)


def test_a_file_with_one_good_row_is_tolerated(tmp_path):
    second = text_of([{"problem": "p"}] * 9 + [ROW], "jsonl")
    assert "9 records are refused (9 shape): correct the drop, or set such" in _two(
        tmp_path, second, bad_rows=8
    )
    drop = tmp_path / "gsm8k"
    summary = normalize(drop, tmp_path / "more", NormalizeConfig(bad_rows=9), split="train")
    assert (summary.records, summary.rejected, summary.rejected_by) == (301, 9, {"shape": 9})


@pytest.mark.parametrize("name", ["train-1.jsonl", "train-1.json", "train-1.csv", "train-1.tsv"])
def test_an_empty_text_beside_others_is_refused_by_name(tmp_path, name):
    empty = {"jsonl": b"\xef\xbb\xbf\n", "json": b"[]"}.get(name[8:], b"question\n")
    assert _two(tmp_path, empty, name).startswith(f"{name}: holds no row of gsm8k: take it out, or")
    assert _two(tmp_path / "2", packed(empty, "gz"), f"{name}.gz").startswith(
        f"{name}.gz: holds no"
    )


def test_files_of_reveal_fail_by_the_answers_that_begin_in_them(tmp_path):
    step = {"step_idx": 0, "step": "s", "evidence": "e", "question": "q"}
    write(tmp_path / "reveal", "train-0.jsonl", [step | {"answer_id": "a"}])
    rows = [step | {"answer_id": "a", "step_idx": 1}, {"answer_id": "b"} | step | {"question": ""}]
    bad = write(tmp_path / "reveal", "train-1.jsonl", rows)
    config = NormalizeConfig(bad_rows=5)
    with pytest.raises(BadInput, match=r"train-1\.jsonl:2: its question is empty \(no row of the"):
        normalize(tmp_path / "reveal", tmp_path / "1", config, split="train")
    bad.write_bytes(text_of([rows[0], {"answer_id": "", **step} | {"answer_id": ""}], "jsonl"))
    summary = normalize(tmp_path / "reveal", tmp_path / "2", config, split="train")
    assert (summary.records, summary.rejected_by) == (1, {"answer_id": 1})
    left_out = step | {"answer_id": "c", "evidence": None}
    bad.write_bytes(text_of([left_out, step | {"answer_id": ""}], "jsonl"))
    summary = normalize(tmp_path / "reveal", tmp_path / "3", config, split="train")
    assert (summary.records, summary.rejected_by) == (1, {"answer_id": 1})
    assert (summary.rejected, summary.left_out_by) == (2, {"evidence": 1})


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv"])
def test_lines_that_end_in_cr_alone_give_the_same_file(tmp_path, ending):
    rows = [{"question": f"q{n}", "answer": f"a {n}"} for n in range(3)]
    text = text_of(rows, ending).replace(b"\r\n", b"\n")
    for name, octets in (("lf", text), ("cr", text.replace(b"\n", b"\r"))):
        write(tmp_path / name / "gsm8k", f"train.{ending}", octets)
        drop = tmp_path / name / "gsm8k"
        normalize(drop, tmp_path / name / "out", NormalizeConfig(), split="train")
    for path in ("gsm8k/train.jsonl", "origins/gsm8k__train.npy"):
        one, other = (tmp_path / name / "out" / path for name in ("lf", "cr"))
        assert one.read_bytes() == other.read_bytes()


def test_an_empty_record_is_kept_and_counted(tmp_path):
    records, summary = built(tmp_path, "gsm8k", [{"question": "", "answer": None}, ROW])
    assert (summary.records, summary.empty, len(records)) == (2, 1, 2)
    assert records[0] == {"question": "", "answer": "", "cot": None, "source_dataset": "gsm8k"}


def test_whole_numbers_keep_all_digits_and_the_longest_run_of_white_space_is_kept(tmp_path):
    raw = b'{"question": 123456789012345678901234567890, "answer": 18446744073709551615}\n'
    records, _ = built(tmp_path, "gsm8k", raw)
    assert records[0]["question"] == "123456789012345678901234567890"
    assert records[0]["answer"] == "18446744073709551615"
    (tmp_path := tmp_path / "next").mkdir()
    records, _ = built(
        tmp_path, "gsm8k", [{"question": "a" + " " * 100_000 + "b", "answer": "b"}], bad_rows=0
    )
    assert len(records[0]["question"]) == 100_002


def test_memory_does_not_grow_with_the_records(tmp_path):
    row = text_of([{"question": "q" * 3000, "answer": "a" * 1000}], "jsonl")
    write(tmp_path / "gsm8k", "train.jsonl", row * 3000)
    tracemalloc.start()
    normalize(tmp_path / "gsm8k", tmp_path / "out", NormalizeConfig(), split="train")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (tmp_path / "out/gsm8k/train.jsonl").stat().st_size / 2
    origins = mapped(tmp_path / "out/origins/gsm8k__train.npy")
    assert (origins == [[0, row] for row in range(1, 3001)]).all()


def _lines_of_many_kinds() -> bytes:
    """Good rows, blank lines, refused ones, unknown keys, long numbers, other line ends."""
    lines: list[bytes] = []
    for number in range(400):
        row: dict[str, Any] = {"question": f"q{number}", "answer": "a" * (number % 7 * 40 or 1)}
        row |= {f"more{number % 3}": number} if number % 5 == 0 else {}
        row |= {"answer": ""} if number % 50 == 17 else {}
        row |= {"question": 10**30 + number} if number % 50 == 23 else {}
        lines.append(json.dumps(row).encode() + (b"\r\n" if number % 11 == 0 else b"\n"))
        lines += [b"\n", b"  \n"] * (number % 40 == 39)
        lines += [b"{\n"] * (number % 90 == 89)
    return b"".join(lines) + b"\n\n"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_file_that_is_read_in_pieces_gives_the_same_bytes(tmp_path, monkeypatch, workers):
    text = _lines_of_many_kinds()
    write(tmp_path / "gsm8k", "a-train.jsonl", text)
    write(tmp_path / "gsm8k", "b-train.jsonl", text[text.index(b"\n") + 1 :])
    write(tmp_path / "gsm8k", "aa-train.json", [ROW])
    made = []
    for size, least in ((1, 1 << 30), (1 << 20, 1), (300, 1), (1, 1)):
        monkeypatch.setattr(read_rows, "_PIECE_BYTES", size)
        monkeypatch.setattr(read_rows, "_LEAST_BYTES", least)
        config = NormalizeConfig(bad_rows=100, workers=workers)
        out = tmp_path / f"out{len(made)}"
        counts = counts_of(normalize(tmp_path / "gsm8k", out, config, split="train"))
        files = [path for path in sorted(out.rglob("*")) if path.is_file()]
        made.append((counts, {path.relative_to(out): path.read_bytes() for path in files}))
    assert made == made[:1] * 4
    assert counts["rejected"] == 24


@pytest.mark.parametrize("size", [1, 200, 1 << 20])
def test_what_a_piece_breaks_is_said_with_the_row_of_its_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(read_rows, "_LEAST_BYTES", 1)
    monkeypatch.setattr(read_rows, "_PIECE_BYTES", size)
    good = text_of([ROW] * 50, "jsonl")
    write(tmp_path / "gsm8k", "train.jsonl", good + b'{"question": 1}\n' + good)
    with pytest.raises(BadInput, match=r"train\.jsonl:51: lacks the column answer"):
        normalize(tmp_path / "gsm8k", tmp_path / "out", NormalizeConfig(), split="train")
    limits = replace(LIMITS, line_bytes=1000)
    monkeypatch.setattr(normalized, "rows", partial(read_rows.rows, limits=limits))
    long = text_of([{**ROW, "more": "m" * 990}], "jsonl")
    write(tmp_path / "gsm8k", "train.jsonl", good * 2 + long + good)
    with pytest.raises(BadInput, match=r"train\.jsonl:101: a line of more than 1000 bytes"):
        normalize(tmp_path / "gsm8k", tmp_path / "other", NormalizeConfig(), split="train")


def test_a_split_without_files_or_of_which_all_is_left_out_is_not_built(tmp_path):
    write(tmp_path / "gsm8k", "train.jsonl", [ROW])
    with pytest.raises(NothingToBuild, match="holds no file of the split test of gsm8k"):
        normalize(tmp_path / "gsm8k", tmp_path / "out", NormalizeConfig(), split="test")
    rule = r"train\.jsonl: no record of the split is left \(2 evidence\): correct the drop, or take"
    with pytest.raises(BadInput, match=rule):
        built(tmp_path, "reveal", [ROW, ROW])


def test_a_drop_of_another_name_is_read_as_a_named_corpus(tmp_path):
    write(tmp_path / "other", "train.jsonl", [ROW])
    with pytest.raises(BadInput, match=r"is no built-in corpus.*gsm8k, cot_collection"):
        normalize(tmp_path / "other", tmp_path / "out", NormalizeConfig(), split="train")
    summary = normalize(
        tmp_path / "other", tmp_path / "out", NormalizeConfig(), corpus="gsm8k", split="train"
    )
    assert summary.records == 1


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
def test_a_damaged_or_hostile_archive_is_refused(tmp_path, packing):
    whole = packed(text_of([ROW] * 500, "jsonl"), packing)
    bomb = packed(b" " * (18 << 20), packing)
    for octets, found in ((whole[:-9], "ends in|broken"), (b"x" * 99, "broken"), (bomb, "bomb")):
        drop = tmp_path / found[:4] / "gsm8k"
        drop.mkdir(parents=True)
        (drop / f"train.jsonl.{packing}").write_bytes(octets)
        with pytest.raises(BadInput, match=found):
            normalize(drop, drop.parent / "out", NormalizeConfig(), split="train")


@pytest.mark.parametrize(
    ("octets", "ending"), [(b'{"a":[', "csv"), (b"", "csv"), (b"\n", "jsonl"), (b"[]", "json")]
)
def test_a_file_without_a_row_is_refused_by_name(tmp_path, octets, ending):
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / f"gsm8k/test.{ending}").write_bytes(octets)
    with pytest.raises(BadInput, match=rf"test\.{ending}: holds no row of gsm8k"):
        normalize(tmp_path / "gsm8k", tmp_path / "out", NormalizeConfig(), split="test")


def test_of_several_parquet_files_one_may_be_empty(tmp_path):
    drop = tmp_path / "gsm8k"
    drop.mkdir()
    table = pa.table({"question": ["q"], "answer": ["a #### 1"]})
    pq.write_table(table.slice(0, 0), drop / "test-00000-of-00002.parquet")
    with pytest.raises(BadInput, match=r"test-00000-of-00002\.parquet: holds no row of gsm8k"):
        normalize(drop, tmp_path / "alone", NormalizeConfig(), split="test")
    empty = table.slice(0, 0).replace_schema_metadata({"shard": "1"})
    pq.write_table(empty, drop / "test-00001-of-00002.parquet")
    with pytest.raises(BadInput, match=r"test-00000-of-00002\.parquet: holds no row of gsm8k"):
        normalize(drop, tmp_path / "both", NormalizeConfig(), split="test")
    pq.write_table(table, drop / "test-00001-of-00002.parquet")
    assert normalize(drop, tmp_path / "out", NormalizeConfig(), split="test").records == 1

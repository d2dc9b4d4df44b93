"""Which rows stay, by the values of the project's rules."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.synth.builders import distill_shard
from gristmill.synth.builders.distill_shard import (
    DistillSummary,
    Shares,
    Texts,
    build_distill,
    ends_in_answer,
    texts_in,
    texts_of,
)
from gristmill.synth.config import DistillConfig
from gristmill.synth.laws import distill_law as law
from gristmill.synth.read import distill
from gristmill.synth.render.documents import Renderer
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned
from tests.synth.builders.distill_rows import PLAIN, harmony_row, message, rendered, write

CONFIG = DistillConfig(Path("absent"))


def test_draws_decide_splits_and_faults_are_named_in_their_order():
    drawn = [distill_shard.draw(1337, salt, "abc") for salt in ("mem", "lang", "global", "split")]
    assert [round(each, 6) for each in drawn] == [0.753794, 0.634166, 0.625753, 0.8034]
    name, drawn = "abc", distill_shard.draw(1337, "split", "abc")
    assert not distill_shard.is_valid(DistillConfig(Path("absent"), drawn - 1e-9), name)
    assert distill_shard.is_valid(DistillConfig(Path("absent"), drawn + 1e-9), name)
    ids = [f"row{number}" for number in range(20_000)]
    valid = [name for name in ids if distill_shard.is_valid(CONFIG, name)]
    assert valid == [name for name in ids if distill_shard.draw(1337, "split", name) < 1 - 0.99]
    assert 150 < len(valid) < 250
    failed = "result: 3, Failed after maximum ATTEMPTS"
    assert distill_shard.fault(CONFIG, failed, " \n") == "empty_answer"
    assert distill_shard.fault(CONFIG, failed, "4") == "failed"
    assert distill_shard.fault(CONFIG, "result: 3", "4") == "wrong_answer"
    assert distill_shard.fault(CONFIG, "result: 3", "3") == ""
    lax = DistillConfig(Path("absent"), drop_failed=False, drop_wrong=False)
    assert distill_shard.fault(lax, failed, "4") == ""
    assert [distill_shard.label(each) for each in (" EN ", "", None, 3)] == [
        "en",
        "unknown",
        "unknown",
        "3",
    ]


@pytest.mark.parametrize(
    ("constraints", "answer", "wrong"),
    [
        ("result: 24", "It is 24.", False),
        ("result: 24", "It is 25, not 24.", True),
        ("Result :-2.5;x", "-2.5", False),
        ("result: 1,000", "1000", True),  # read as 1
        ("result: 1000", "1,000 in all", False),
        ("result: 1000000", "1000000.9", False),
        ("result: 1000000", "1000001.1", True),
        ("result: b", "**B** is right", False),
        ("result: C", "B, of course", True),
        ("result: C", "Because of B", False),
        ("result: A", "It is 7", False),
        ("result: blue", "7", False),
        ("result: 7", "blue", False),
        ("forty words", "7", False),
    ],
)
def test_an_answer_is_compared_with_the_result(constraints, answer, wrong):
    assert distill_shard.is_wrong(constraints, answer) == wrong


def test_shares_are_kept_and_a_row_above_one_is_left_out_by_the_first_draw():
    counts = Counter({("memorization", "en"): 900, ("math", "en"): 60, ("math", "fr"): 40})
    assert distill_shard.shares(CONFIG, counts).memorization == pytest.approx(0.7 * 100 / 0.3 / 900)
    assert distill_shard.shares(CONFIG, counts).other_languages == 1
    counts = Counter({("memorization", "de"): 600, ("math", "en"): 400})
    assert distill_shard.shares(CONFIG, counts) == Shares(1.0, 1000 * 0.25 / 600)
    assert distill_shard.shares(CONFIG, Counter({("math", "unknown"): 9})) == Shares()
    assert distill_shard.shares(CONFIG, Counter()) == Shares()
    free = DistillConfig(Path("absent"), memorization_cap=1.0, english_share=0.0)
    assert distill_shard.shares(free, counts) == Shares()
    few = Shares(0.7, 0.6)

    def out(kind: str, language: str, keep: float = 1.0) -> str:
        config = DistillConfig(Path("absent"), keep=keep)
        return distill_shard.sampled_out(config, few, "abc", kind, language)

    assert out("memorization", "fr") == "memorization"
    assert out("math", "fr") == "language"
    assert (out("math", "en"), out("math", "en", 0.63), out("math", "en", 0.62)) == (
        "",
        "",
        "share",
    )


ASKED = message("user", "q")
ANSWERED = message("assistant", "a", "final")
THOUGHT = message("assistant", "t", "analysis")
TALKS: list[tuple[list[dict[str, Any]], Texts]] = [
    ([ASKED, THOUGHT, ANSWERED], Texts("q", "t", "a", True)),
    ([ASKED, ANSWERED], Texts("q", "", "a", True)),
    ([message("system", "s"), ASKED, ANSWERED], Texts("q", "", "a", True)),
    ([message("developer", "d"), THOUGHT, ANSWERED], Texts("", "t", "a", False)),
    ([ASKED, ANSWERED, message("user", "r"), THOUGHT, ANSWERED], Texts("r", "t", "a", False)),
    ([ASKED, THOUGHT, THOUGHT, ANSWERED], Texts("q", "t", "a", False)),
    ([ASKED | {"content": ASKED["content"] * 2}, ANSWERED], Texts("qq", "", "a", True)),
]


@pytest.mark.parametrize(("messages", "texts"), TALKS)
def test_the_texts_are_those_of_the_messages(messages, texts, vocabulary):
    text = json.dumps({"messages": messages})
    assert texts_of(text) == texts
    assert texts_in(Renderer(vocabulary).read(text), text) == texts


@pytest.mark.parametrize(
    ("answer", "is_sure"),
    [
        *(("A", True), (".", True), ("x y", True), ("", False), (" ", False), ("\n", False)),
        *(("\x0b", False), ("\xa0", False), ("\\", False), ('"', False), ("\t  ", False)),
    ],
)
def test_an_answer_is_surely_not_blank_or_is_parsed(answer, is_sure):
    text = json.dumps({"messages": [ASKED, message("assistant", answer, "final")]})
    assert ends_in_answer(text) == is_sure
    assert not ends_in_answer(text + " ")


FREE: dict[str, Any] = {"english_share": 0.0, "memorization_cap": 1.0}


def build(shard: Path, out: Path, vocabulary: Path, **chosen: Any) -> DistillSummary:
    config = DistillConfig(vocabulary, **chosen)
    tokenizer = of_pinned(O200K, vocabulary)
    return build_distill(shard, out, config, tokenizer, dataset="pleias_synth")


def rows_of(folder: Path, split: str = "train") -> list[dict[str, Any]]:
    return [row for batch in distill.batches(folder, split) for row in batch.to_pylist()]


def violations(folder: Path, **config: Any) -> list[str]:
    return [
        each.law for each in law(Subject(folder, None, [], config={"template": "harmony"} | config))
    ]


@pytest.mark.slow
def test_rows_in_harmony_are_those_of_the_project_s_rules(real, vocabulary, tmp_path):
    shard = real / "synth_harmony" / "synth_harmony_shard_00.parquet"
    summary = build(shard, tmp_path / "out", vocabulary, valid_fraction=0.2)
    found = {split: rows_of(tmp_path / "out", split) for split in distill.SPLITS}
    assert [len(rows) for rows in found.values()] == [summary.train_rows, summary.valid_rows]
    assert sum(map(len, found.values())) == summary.rows == 250
    rows = {row["id"]: row for each in found.values() for row in each}
    for item in pq.read_table(shard).slice(0, 40).to_pylist():
        ids, labels, spans = rendered(vocabulary, json.loads(item["messages_json"])["messages"])
        row = rows[f"pleias_synth:{item['synth_id']}"]
        assert (row["input_ids"], row["labels"], row["spans"]) == (ids, labels, spans)
        assert row["attention_mask"] == [1] * len(ids)
    assert violations(tmp_path / "out", valid_fraction=0.2, seed=1337, max_length=8192) == []
    assert set(violations(tmp_path / "out", max_length=300)) == {"max_length"}


def test_rows_in_the_plain_template_are_those_of_the_project_s_rules(vocabulary, tmp_path):
    texts = [
        (
            "a",
            " What is it? ",
            "\n I think\n",
            "It is.  ",
            None,
            "What is it?",
            "I think",
            "It is.",
        ),
        ("b", "Q\0?", "\t ", "A <|end|>", " \n", "Q?", "", "A <|end|>"),
        ("c", "Q", "", "A", " see\nthis ", "Q\n\nReference:\nsee\nthis", "", "A"),
    ]
    shard = write([harmony_row(*text[:4], query_seed_text=text[4]) for text in texts], tmp_path)
    chosen = {"template": "chatgpt_plain", "reasoning": "low", "valid_fraction": 0.0} | FREE
    build(shard, tmp_path / "out", vocabulary, **chosen)
    rows = rows_of(tmp_path / "out")
    for row, (name, *_, query, thought, answer) in zip(rows, texts, strict=True):
        messages = [message("system", PLAIN), message("user", query)]
        messages += [message("assistant", thought, "analysis")] if thought else []
        messages.append(message("assistant", answer, "final"))
        ids, labels, spans = rendered(vocabulary, messages)
        assert (row["input_ids"], row["labels"], row["spans"]) == (ids, labels, spans)
        assert row["source"] == {
            "dataset": "pleias_synth",
            "language": "unknown",
            "exercise": "unknown",
            "meta_json": '{"dataset":"pleias_synth","exercise":"unknown","language":"unknown",'
            f'"synth_id":"{name}"}}',
        }
    assert violations(tmp_path / "out") == []


def test_rows_that_are_left_out_are_counted_by_reason(vocabulary, tmp_path):
    rows = [
        harmony_row("a", "q", "t", " \n"),
        harmony_row("b", "q", "t", "7", constraints="x failed after maximum attempts"),
        harmony_row("c", "q", "t", "7", constraints="result: 8"),
        harmony_row("d", "  ", "t", "7"),
        harmony_row("e", "q", "t", "word " * 200),
        *(harmony_row(f"en{at}", "q", "t", "7", language="EN") for at in range(30)),
        *(harmony_row(f"fr{at}", "q", "t", "7", language="fr") for at in range(30)),
    ]
    shard = write(rows, tmp_path)
    summary = build(shard, tmp_path / "out", vocabulary, max_length=100, keep=0.9)
    out = dict(summary.left_out)
    assert {name: out.pop(name) for name in ("empty_answer", "failed", "wrong_answer")} == {
        "empty_answer": 1,
        "failed": 1,
        "wrong_answer": 1,
    }
    assert out.pop("empty_query", 0) + out.pop("too_long", 0) + sum(out.values()) + 3 == (
        len(rows) - summary.rows
    )
    assert summary.other_languages_keep == pytest.approx(62 * 0.25 / 32)
    assert set(out) == {"language", "share"}
    ids = [row["id"] for split in distill.SPLITS for row in rows_of(tmp_path / "out", split)]
    assert len(ids) == summary.rows
    free = build(shard, tmp_path / "free", vocabulary, max_length=100, **FREE)
    assert dict(free.left_out) == {
        "empty_answer": 1,
        "failed": 1,
        "wrong_answer": 1,
        "empty_query": 1,
        "too_long": 1,
    }


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers(real, vocabulary, tmp_path):
    shard = real / "synth_harmony" / "synth_harmony_shard_01.parquet"
    for workers in (1, 2):
        build(shard, tmp_path / str(workers), vocabulary, workers=workers)
    one, two = (sorted(p for p in (tmp_path / w).rglob("*") if p.is_file()) for w in "12")
    assert [p.relative_to(tmp_path / "1") for p in one] == [
        p.relative_to(tmp_path / "2") for p in two
    ]
    assert [sha256_file(p) for p in one if p.suffix != ".parquet"] == [
        sha256_file(p) for p in two if p.suffix != ".parquet"
    ]


def test_a_shard_without_a_template_or_a_row_that_stays_is_refused(vocabulary, tmp_path):
    row = harmony_row("a", "q", "t", "7")
    del row["query_seed_text"]
    shard = write([row], tmp_path)
    with pytest.raises(BadInput, match=r"query_seed_text.*metadata_fields.*reference = false"):
        build(shard, tmp_path / "out", vocabulary, template="chatgpt_plain")
    build(shard, tmp_path / "out", vocabulary, template="chatgpt_plain", reference=False)
    (tmp_path := tmp_path / "next").mkdir()
    shard = write([harmony_row("a", "q", "t", " ")], tmp_path)
    with pytest.raises(BadInput, match=r"all rows are left out .empty_answer 1."):
        build(shard, tmp_path / "out", vocabulary)


def test_a_row_that_is_not_utf8_is_set_aside(vocabulary, tmp_path):
    shard = write([harmony_row(name, "q", "t", "7", constraints="x") for name in "ab"], tmp_path)
    table, broken = pq.read_table(shard), pa.array([b"x", b"\xff"], pa.binary()).view(pa.string())
    at = table.schema.get_field_index("constraints")
    pq.write_table(table.set_column(at, "constraints", broken), shard)
    with pytest.raises(BadInput, match="constraints is not UTF-8"):
        build(shard, tmp_path / "no", vocabulary)
    summary = build(shard, tmp_path / "out", vocabulary, bad_rows=1)
    assert (summary.rows, summary.bad_rows) == (1, 1)


def test_several_questions_are_set_aside_by_the_plain_template(vocabulary, tmp_path):
    several = harmony_row("b", "q", "t", "7")
    messages = json.loads(several["messages_json"])["messages"]
    several["messages_json"] = json.dumps({"messages": messages * 2})
    shard = write([harmony_row("a", "q", "t", "7"), several], tmp_path)
    chosen = {"template": "chatgpt_plain", "valid_fraction": 0.0} | FREE
    with pytest.raises(BadInput, match="one question and one answer"):
        build(shard, tmp_path / "no", vocabulary, **chosen)
    assert build(shard, tmp_path / "out", vocabulary, bad_rows=1, **chosen).bad_rows == 1
    in_harmony = build(shard, tmp_path / "all", vocabulary, valid_fraction=0.0, **FREE)
    assert in_harmony.rows == 2
    ids, labels, _ = rendered(vocabulary, messages)
    last = rows_of(tmp_path / "all")[-1]
    assert len(last["input_ids"]) == 2 * len(ids)
    # What was answered before is of the prompt.
    assert [label for label in last["labels"] if label >= 0] == [x for x in labels if x >= 0]


@pytest.mark.parametrize("column", ["labels", "attention_mask", "input_ids", "spans"])
def test_a_damaged_column_breaks_a_law(column, vocabulary, tmp_path):
    shard = write([harmony_row(str(at), "q", "t", "7") for at in range(9)], tmp_path)
    build(shard, tmp_path / "out", vocabulary, valid_fraction=0.0, **FREE)
    (path,) = distill.files_of(tmp_path / "out", "train")
    rows = rows_of(tmp_path / "out")
    if column == "spans":
        rows[4][column]["final_token_count"] += 1
    else:
        rows[4][column][-1] = 5
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, distill.SCHEMA) as stream:
        stream.write_table(pa.Table.from_pylist(rows, schema=distill.SCHEMA))
    broken = {"input_ids": {"labels", "end"}, "labels": {"labels"}}
    assert set(violations(tmp_path / "out")) == broken.get(column, {column})


def test_ids_that_the_trace_has_not_break_a_law(vocabulary, tmp_path):
    shards = [write([harmony_row(name, "q", "t", "7")], tmp_path / name) for name in "ab"]
    for name, shard in zip("ab", shards, strict=True):
        build(shard, tmp_path / f"out{name}", vocabulary, valid_fraction=0.0, **FREE)
    path = "trace/trace_00.parquet"
    (tmp_path / "outa" / path).write_bytes((tmp_path / "outb" / path).read_bytes())
    assert violations(tmp_path / "outa") == ["trace"]
    (tmp_path / "outa" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    assert set(violations(tmp_path / "outa")) == {"splits", "trace"}

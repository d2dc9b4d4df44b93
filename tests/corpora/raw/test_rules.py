"""Rows of steps become one record for each answer.

Which records stay: rules that draw by hashes, the same on every machine.
"""

import json
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import CORPORA, corpus_of_table
from gristmill.corpora.raw.reader import Reader
from gristmill.corpora.raw.rules import Group, Rules, drawn
from gristmill.corpora.raw.texts import ClassName, Unfit
from gristmill.corpora.raw.values import Names
from gristmill.corpora.records import Record
from gristmill.reasoning.builders.normalize import NormalizeSummary, normalize
from gristmill.reasoning.config import CorpusConfig
from gristmill.reasoning.laws.texts import normalized_laws
from tests.reasoning.drops import unfit


def _row(key: str, step: Any, text: str, evidence: Any = None, **more: Any) -> dict[str, Any]:
    row = {"answer_id": key, "step_idx": step, "step": text, "evidence": evidence}
    return row | {"question": f"q{key}"} | more


def _records(rows: list[dict[str, Any]]) -> list[tuple[tuple[int, int], Record]]:
    reader = Reader(CORPORA["reveal"])
    for number, row in enumerate(rows, 1):
        assert reader.read(row, (0, number)) is None
    return list(reader.rest())


def test_rows_of_one_answer_may_be_apart_and_in_any_order():
    found = _records(
        [
            _row("a", "10", "last", "e9", http_link="u1"),
            _row("b", 0, "only"),
            _row("a", "2", "second", "e1", http_link="u1"),
            _row("a", " 1", "first\r\nline", "e2 "),
            _row("a", "2", "another text", "e3"),
        ]
    )
    assert [place for place, _ in found] == [(0, 1), (0, 2)]
    assert found[0][1] == Record(
        "qa",
        "",
        "first\nline\nsecond\nlast",
        ("e2\ne1\ne3\ne9", "u1"),
        ["first\nline", "second", "last"],
        "public",
    )
    assert found[1][1] == Record("qb", "", "only", (None, None), ["only"], "public")


def test_equal_questions_are_taken_once_and_samples_by_id_in_any_order():
    ((_, record),) = _records([_row("a", 1.0, "x", answer="yes", citation="c", http_link="u")])
    assert (record.answer, record.extras) == ("yes", (None, "c"))
    rows = [{"q": "x"}, {"q": "y"}, {"q": "x"}]
    assert left({"dedup": ["question"]}, *rows) == [None, None, "dedup:question"]
    assert [round(drawn("abc", 1337, salt), 6) for salt in ("mem", "split")] == [0.753794, 0.8034]
    answers = Group(CORPORA["reveal"], CORPORA["reveal"].forms[0], Names(), most_bytes=3000)
    with pytest.raises(GristmillError, match="bytes of text: give one row a record"):
        for number in range(100):
            answers.add(_row(str(number % 3), number, "x" * 100), (0, number + 1))
    assert number == 4
    rows = [{"q": "q", "id": number} for number in range(1000)]
    rule = {"sample": {"share": 0.3}, "id": "id"}
    found = left(rule, *rows)
    assert 250 < found.count(None) < 350
    assert left(rule, *reversed(rows)) == found[::-1]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (_row(" ", "1", "x"), "answer_id"),
        (_row("a", "x", "x"), "step_idx"),
        (_row("a", None, "x"), "step_idx"),
        (_row("a", 1.5, "x"), "step_idx"),
        (_row("a", float("inf"), "x"), "step_idx"),
        (_row("a", "9" * 5000, "x"), "step_idx"),
        (_row("a", "1", " "), "step"),
    ],
)
def test_a_row_that_is_no_step_is_refused(row, reason):
    with unfit(reason):
        _records([row])


PLAIN = {"schema": 1, "name": "mine", "question": "q", "answer": "a", "cot": "c"}


def left(table: dict[str, Any], *rows: dict[str, Any], split: str = "train") -> list[str | None]:
    """Of each row the rule that leaves it out."""
    rules, found = Rules(corpus_of_table(PLAIN | table), split), list[str | None]()
    for row in rows:
        try:
            rules.check_row(row)
            rules.check(Record(str(row.get("q")), "a", None), row)
            found.append(None)
        except Unfit as unfit:
            found.append(unfit.reason)
    return found


def test_rows_are_kept_by_their_columns_and_equal_keys_are_in_one_split():
    keep = [{"column": "l", "in": ["en", 1]}, {"column": "n.x", "at_least": 0.5}]
    rows = [
        {"l": "en", "n": {"x": 0.5}},
        {"l": "fr", "n": {"x": 1}},
        {"l": 1, "n": {"x": "0.4"}},
        {"l": "en"},
    ]
    assert left({"keep": keep}, *rows) == [None, "keep:l", "keep:n.x", "keep:n.x"]
    chars = [{"column": "q", "chars": [2, 3], "present": True, "not_in": ["abc"]}]
    assert left({"keep": chars}, {"q": "ab"}, {"q": "a"}, {"q": "abc"}, {"q": "abcd"}) == [
        *(None, "keep:q", "keep:q", "keep:q")
    ]
    assert left({"keep": [{"column": "q", "equals": True}]}, {"q": True}) == [None]
    rows = [{"q": str(number), "k": number // 2} for number in range(400)]
    rule = {"split": {"by": "k", "validation": 0.2, "test": 0.1}}
    found = {name: left(rule, *rows, split=name) for name in ("train", "validation", "test")}
    for of_row in zip(*found.values(), strict=True):
        assert of_row.count(None) == 1
    assert found["test"][::2] == found["test"][1::2]
    counts = [of.count(None) for of in found.values()]
    assert counts[0] > counts[1] > counts[2] > 0


@pytest.mark.parametrize(
    ("key", "hint"),
    [("min", ": did you mean at_least?"), ("most", ": did you mean at_most?"), ("zzz", "")],
)
def test_a_test_by_another_name_is_named(key, hint):
    rule = re.escape(f"keep: unknown key {key!r}{hint}; known: column, in,")
    with pytest.raises(ValueError, match=rule):
        left({"keep": [{"column": "q", key: 1}]})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"column": "a", "equal": "x"}, "did you mean equals"),
        ({"column": "a"}, "the rule for a has none of"),
        ({"column": "a", "chars": [1]}, "`chars` must be two whole numbers"),
        ({"column": "a", "in": "en"}, "`in` must be a list"),
        ({"in": ["en"]}, "a rule is a table as"),
    ],
)
def test_a_wrong_rule_says_what_it_must_be(rule, message):
    with pytest.raises(ValueError, match=message):
        left({"keep": [rule]})


def table_of(random: Random) -> dict[str, Any]:
    """A random corpus."""
    values = [
        "q",
        "a.x",
        {"template": "{q} {c}\n{a.x}"},
        {"column": "q", "after_line": "b"},
        "c.0",
        {"column": "q", "before": "x"},
        {"column": "c", "between": ["<", ">"], "which": "last"},
        {"column": "c", "map": {"1": "one", "true": "yes"}},
        {"column": "a", "map": {"1": "one"}, "else": "many"},
        {"join": "c", "by": " ", "item": "{letter}) {text}"},
        {"choice": "a", "of": "c", "as": "both"},
        {"think": "q"},
        {"first": ["c", "q"]},
        {"constant": "k"},
    ]
    table: dict[str, Any] = {"schema": 1, "name": "mine", "extras": ["e"]}
    table |= {name: random.choice(values) for name in ("question", "answer", "cot", "e")}
    rules = {
        "keep": [{"column": "c", "present": True}, {"column": "q", "chars": [0, 9]}],
        "dedup": ["question"],
        "sample": {"share": 0.7, "cap": 9},
        "split": {"validation": 0.3},
        "when": ["q"],
    }
    return table | {name: rule for name, rule in rules.items() if random.random() < 0.4}


def built(folder: Path, table: dict[str, Any], rows: list[Any], out: str) -> NormalizeSummary:
    """Normalise rows by a table."""
    drop = folder / "mine"
    drop.mkdir(exist_ok=True)
    (drop / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = json.dumps(table, sort_keys=True)
    config = CorpusConfig(bad_rows=10**6, corpus=corpus)
    return normalize(drop, folder / out, config, split="train")


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_counters_of_random_corpora_add_up(tmp_path, count):
    random, reasons = Random(7), Counter[str]()
    cells = ["x", "", "1", 1, True, None, ["x", "y"], {"x": "y"}, "a\nb c", 2.5, "\ufeffx\r\n"]
    cells += ["<think>t</think>u", "<v>", [], ["A) p", 2]]
    for number in range(count):
        table = table_of(random)
        rows = [
            {name: random.choice(cells) for name in "qac" if random.random() < 0.9}
            for _ in range(30)
        ]
        # One row that stays, for a file without a good row is refused.
        good = {"question": "q", "answer": {"column": "q"}, "cot": "c", "e": {"constant": 1}}
        if number % 2:
            table |= good
        place = tmp_path / str(number)
        place.mkdir()
        try:
            summary = built(place, table, rows, "out")
        except BadInput:
            continue
        left_out = sum(summary.left_out_by.values()) + sum(summary.rejected_by.values())
        assert summary.raw_rows == 30 == summary.records + left_out
        assert summary.rejected == left_out and summary.grouped == 0
        reasons.update(summary.left_out_by)
        key, corpus = "mine__train", json.dumps(table)
        assert not list(normalized_laws(place / "out", key, table=corpus))
        assert built(place, table, rows, "again") == summary
        for name in ("mine/train.jsonl", "origins/mine__train.npy"):
            assert (place / "out" / name).read_bytes() == (place / "again" / name).read_bytes()
    kinds = {reason.partition(":")[0] for reason in reasons}
    assert kinds == {"keep", "dedup", "sample", "split", "cap"}


def test_a_cap_keeps_the_records_with_the_least_numbers_of_all_files(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    questions = [f"q{number}" for number in range(40)] + ["q1", "q1"]
    for name, some in (("a.jsonl", questions[:25]), ("b.jsonl", questions[25:])):
        lines = [json.dumps({"q": each, "a": "a", "c": "c"}) + "\n" for each in some]
        (folder / name).write_text("".join(lines))

    def kept(name: str, sample: dict[str, Any]) -> tuple[list[str], NormalizeSummary]:
        table = json.dumps(PLAIN | {"files": {"train": "*"}, "sample": sample})
        config = CorpusConfig(corpus=table)
        made = normalize(folder, tmp_path / name, config, corpus="mine", split="train")
        lines = (tmp_path / name / "mine/train.jsonl").read_text().splitlines()
        assert sorted(path.name for path in (tmp_path / name).iterdir()) in (
            ["mine", "origins", "rejected"],
            ["mine", "origins"],
        )
        return [json.loads(line)["question"] for line in lines], made

    def number(question: str) -> float:
        return drawn("\0".join((question, "a", "c")), 7, "sample")

    for cap in (1, 7, 41):
        found, made = kept(f"out{cap}", {"cap": cap, "seed": 7})
        assert sorted(found, key=number) == sorted(questions, key=number)[:cap]
        assert made.left_out_by == {"cap": 42 - cap}
    # Of equal records those that come first stay, as many as there is room for.
    place = sorted(questions, key=number).index("q1") + 2
    found, _ = kept("ties", {"cap": place, "seed": 7})
    assert found.count("q1") == 2 and len(found) == place
    assert kept("all", {"cap": 42})[1].left_out_by == {}
    shared, made = kept("both", {"cap": 3, "share": 0.5, "seed": 7})
    assert sorted(shared, key=number) == sorted(questions, key=number)[:3]
    assert set(made.left_out_by) == {"cap", "sample"}


@pytest.mark.parametrize(
    ("test", "kept", "left"),
    [
        ({"equals": True}, ["True", "TRUE", "true", True], ["False", "tRue", "1", 1, None, "yes"]),
        ({"equals": False}, ["False", "FALSE", "false", False], ["True", None, ""]),
        ({"equals": "True"}, ["True"], ["TRUE", "true", True]),
        ({"in": [True, "maybe"]}, ["True", "maybe"], ["False", "Maybe"]),
        ({"not_in": [True]}, ["False", None], ["TRUE"]),
        ({"equals": 1}, [1, "1", ClassName(1, "pos")], [ClassName(0, "1"), ClassName(2, "x")]),
        ({"equals": "pos"}, ["pos", ClassName(1, "pos")], [ClassName(0, "neg")]),
        ({"in": ["1", "neg"]}, [ClassName(1, "pos"), ClassName(0, "neg")], [ClassName(2, None)]),
        ({"at_least": 0}, [ClassName(0, "neg")], [ClassName(-1, None)]),
        ({"present": True}, [ClassName(0, "neg")], [ClassName(-1, None)]),
        ({"chars": [3, 3]}, [ClassName(0, "neg")], [ClassName(1, "positive")]),
    ],
)
def test_words_of_truth_and_names_and_numbers_of_classes_are_compared(test, kept, left):
    table = {"schema": 1, "name": "mine", "question": "q", "answer": "a"}
    rules = Rules(corpus_of_table({**table, "keep": [{"column": "c", **test}]}), None)
    for value in kept:
        rules.check_row({"c": value})
    for value in left:
        with pytest.raises(Unfit):
            rules.check_row({"c": value})

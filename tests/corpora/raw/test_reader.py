"""Which form a row has, and what a record takes from it."""

from typing import Any

import pytest

from gristmill.corpora.corpus import CORPORA, corpus_of_table
from gristmill.corpora.raw.drops import splits
from gristmill.corpora.raw.reader import Reader, UnknownKeys, columns_of, with_columns
from gristmill.corpora.raw.rows import rows
from gristmill.corpora.raw.texts import Unfit
from gristmill.corpora.records import Record
from gristmill.reasoning.samples import write_drop
from tests.reasoning.drops import unfit


def read(corpus: str, row: dict[str, Any]) -> Record:
    """The record of a row."""
    record = Reader(CORPORA[corpus]).read(row, (0, 1))
    assert record is not None
    return record


class _Asked(dict[str, Any]):
    """A row that notes the columns that it is asked for."""

    def __init__(self, row: dict[str, Any]) -> None:
        super().__init__(row)
        self.names: set[object] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.names.add(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


@pytest.mark.parametrize("corpus", CORPORA)
def test_the_columns_of_a_corpus_are_those_that_are_read(corpus, tmp_path):
    write_drop(tmp_path / corpus, corpus)
    names: set[object] = set()
    for paths in splits(tmp_path / corpus, CORPORA[corpus]).values():
        reader = Reader(CORPORA[corpus])
        for path in paths:
            for place in rows(path, CORPORA[corpus]):
                assert isinstance(place[1], dict)
                asked = _Asked(place[1])
                reader.read(asked, (0, place[0]))
                names |= asked.names
    # What only a release has, and no sample.
    rest = {"http_link", "evidence_link", "breakpoint", "confl_pairs", "confl_sents", "output"}
    rest |= {"pair_entities", "pair_states", "pair_confl_pairs", "inv_question_pred_answer"}
    assert names <= columns_of(CORPORA[corpus]) <= names | rest


def test_what_a_row_lacks_is_named_and_columns_with_dots_are_places():
    with pytest.raises(Unfit) as error:
        read("openr1_math_220k", {"problem": "p", "answer": "a", "solution": "s"})
    assert error.value.rule == (
        "has the columns problem, answer, solution; the known forms of openr1_math_220k are public "
        "(problem, answer, generations), seed (prompt); of public it lacks generations"
    )
    for question in ("q", {}, None):
        with pytest.raises(Unfit):
            read("wiqa", {"question": question, "metadata": {}})
    reader = own(question="a.b", answer="c.0")
    for row in ({"a.b": "Why?", "c.0": "so"}, {"a": {"b": "Why?"}, "c": ["so"]}):
        record = reader.read(row, (0, 1))
        assert record is not None and (record.question, record.answer) == ("Why?", "so")
    first = own(question="a.0").read({"a": ["Why?"]}, (0, 1))
    assert first is not None and first.question == "Why?"
    forms = [{"when": ["m.kind"], "question": "q"}, {"question": "p", "name": "other"}]
    record = own(form=forms).read({"m": {"other": 1}, "q": 1, "p": "Who?"}, (0, 1))
    assert record is not None and (record.question, record.shape) == ("Who?", "other")
    reader = own(question="q", answer="a")
    with pytest.raises(Unfit, match=r'question = "column" with one of these.*`headerless`'):
        reader.read({"Why?": 1, "so": 2}, (0, 1))
    empty = with_columns(Unfit("answer", "its answer is empty"), reader.corpus, {"q": 1, "a": ""})
    assert empty.rule.endswith('keep = [{ column = "a", present = true }] leaves such rows out')


@pytest.mark.parametrize(
    ("corpus", "row", "record"),
    [
        (
            "cot_collection",
            {"source": "q", "target": "a", "rationale": "r", "task": "t", "type": "CoT"},
            Record("q", "a", "r", ("t", "CoT"), None, "public"),
        ),
        (
            "cot_collection",
            {"question": "q", "answer": "a", "rationale": "r", "source": "s", "target": "x"},
            Record("q", "a", "r", (None, "s"), None, "seed"),
        ),
        (
            "reasoning_traces",
            {"query": "q", "response": "one\ntwo\nThe answer is: 3", "type": "MATH"},
            Record("q", "3", "one\ntwo", ("MATH",), None, "public"),
        ),
        (
            "reasoning_traces",
            {"question": "q", "answer": 3, "inv_question_pred_answer": "c"},
            Record("q", "3", "c", (None,), None, "backward"),
        ),
        (
            "reasoning_traces",
            {"question": "q", "answer": "3", "output": "\nc\nThe answer is: 3"},
            Record("q", "3", "c", (None,), None, "backward"),
        ),
        (
            "wiqa",
            {"question_stem": "q", "question_para_step": ["a", ""], "answer_label": "more"},
            Record("q", "more", "a", (None, None, None), ["a"], "public"),
        ),
        (
            "wiqa",
            {
                "question": {"stem": "q", "para_steps": ["a", "b"], "answer_label": "less"},
                "metadata": {},
            },
            Record("q", "less", "a\nb", (None, None, None), ["a", "b"], "nested"),
        ),
    ],
)
def test_a_public_form_is_read(corpus, row, record):
    assert read(corpus, row) == record


@pytest.mark.parametrize(
    ("corpus", "public"),
    [
        ("cot_collection", {"source": "x", "target": "x"}),
        ("openr1_math_220k", {"problem": "x", "answer": "x", "generations": []}),
        ("reasoning_traces", {"query": "x", "response": "x"}),
        ("reasoning_traces", {"question": "x", "answer": "x", "output": "x"}),
        ("reasoning_traces", {"question": "x", "answer": "x", "inv_question_pred_answer": "x"}),
        ("reveal", {"answer_id": "x", "step_idx": "1", "step": "x"}),
        ("trip", {"stories": [["x"], ["y"]], "label": 1}),
        ("trip", {"stories": [["x"], ["y"]], "pair_plausible_story": 1}),
        ("wiqa", {"question_para_step": ["x"]}),
        ("wiqa", {"question": {"stem": "x"}, "metadata": {}}),
    ],
)
def test_the_seed_s_columns_win_over_a_public_form(corpus, public):
    spec = CORPORA[corpus]
    own = {spec.question_column: "q", spec.answer_column: "a", str(spec.cot_column): "c"}
    record = read(corpus, public | own)
    assert (record.question, record.answer, record.cot, record.shape) == ("q", "a", "c", "seed")


@pytest.mark.parametrize("corpus", CORPORA)
def test_an_unknown_form_is_refused_with_the_known_ones(corpus):
    with unfit("shape", f"has the columns foo, bar; the known forms of {corpus} ") as refused:
        read(corpus, {"foo": 1, "bar": 2})
    assert f"seed ({CORPORA[corpus].question_column})" in refused.value.rule


def test_keys_that_nothing_reads_are_counted_by_name_or_refused():
    table = {
        "schema": 1,
        "name": "mine",
        "question": "q.a",
        "keep": [{"column": "lang", "in": ["en"]}],
    }
    corpus = corpus_of_table(table)
    counted, refused = UnknownKeys(corpus), UnknownKeys(corpus, is_refused=True)
    rows: list[dict[str, Any]] = [{"q": {"a": 1}, "lang": "en"}, {"q": 1, "x": 1}, {"x": 2, "y": 0}]
    for row in rows:
        counted.check(row)
    assert counted.counts == {"x": 2, "y": 1}
    refused.check(rows[0])
    with pytest.raises(Unfit, match=r"has the keys x, y, which nothing reads") as raised:
        refused.check(rows[2])
    assert raised.value.reason == "unknown_keys"
    table |= {"ignore": ["x"]}
    ignoring = UnknownKeys(corpus_of_table(table), is_refused=True)
    ignoring.check(rows[1])
    chosen = UnknownKeys(corpus, known=["x"])
    chosen.check(rows[1])
    assert (ignoring.counts, chosen.counts) == ({}, {"q": 1})
    for number in range(1500):
        counted.check({f"k{number}": 1})
    assert len(counted.counts) == 1000 and counted.counts["x"] == 2


def own(**table: Any) -> Reader:
    return Reader(corpus_of_table({"schema": 1, "name": "mine", **table}))


OBJECT = {"city": "Rome", "year": 1}
NO_TEXTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an object": ({}, {"a": OBJECT}, "its a is an object with the keys city, year, and no text"),
    "one in a list": ({}, {"a": [OBJECT]}, "read its JSON by { json = "),
    "one in a text": ({}, {"a": {"text": OBJECT}}, "or a place in it by its name, as a.city"),
    "a list of lists": ({}, {"a": [[1, 2]]}, "its a holds lists in a list, and no text"),
    "several answers": ({}, {"a": ["x", "y"]}, 'a list of 2 values: read all by { join = "a" }'),
    "token ids": ({}, {"q": [17, 4]}, "its q is a list of 2 values"),
    "a question": ({}, {"q": OBJECT}, "its q is an object"),
    "a place": ({"question": "b.q"}, {"b": {"q": OBJECT}}, "its b.q is an object"),
    "a thought": ({"cot": "c"}, {"c": [OBJECT, "x"]}, "its c is an object"),
    "a template": ({"answer": {"template": "{c}!"}}, {"c": OBJECT}, "its c is an object"),
    "a cut": ({"answer": {"column": "c", "after": ":"}}, {"c": OBJECT}, "its c is an object"),
    "the first": ({"answer": {"first": ["c", "a"]}}, {"c": OBJECT}, "its answer is an object"),
    "a join": ({"answer": {"join": "c"}}, {"c": [OBJECT, OBJECT]}, "its c is an object"),
}


@pytest.mark.parametrize(("recipe", "row", "rule"), NO_TEXTS.values(), ids=NO_TEXTS)
def test_json_notation_is_no_text_until_the_recipe_says_so(recipe, row, rule):
    table = {"schema": 1, "name": "mine", "question": "q", "answer": "a", **recipe}
    with unfit("value", rule):
        Reader(corpus_of_table(table)).read({"q": "x", "a": "y", **row}, (0, 1))


def test_json_lists_and_texts_in_objects_are_read_where_nothing_is_lost():
    rows: list[tuple[dict[str, Any], Any, str]] = [
        ({"answer": {"json": "a"}}, OBJECT, '{"city":"Rome","year":1}'),
        ({"answer": {"json": "a"}}, ["x", "y"], '["x","y"]'),
        ({"answer": {"join": "a"}}, ["x", "y"], "x\ny"),
        ({"answer": {"join": "a", "item": "{city}"}}, [OBJECT], "Rome"),
        ({"answer": {"template": "{a}"}}, ["x", "y"], "x\ny"),
        ({"answer": "a.city"}, OBJECT, "Rome"),
        ({}, ["x"], "x"),
        ({}, {"text": "x"}, "x"),
        ({"extras": ["e"], "e": "a", "answer": "q"}, OBJECT, "x"),
    ]
    for recipe, value, answer in rows:
        table = {"schema": 1, "name": "mine", "question": "q", "answer": "a", **recipe}
        record = Reader(corpus_of_table(table)).read({"q": "x", "a": value}, (0, 1))
        assert record is not None and record.answer == answer
    table["answer"] = {"json": "a"}
    with unfit("number"):
        Reader(corpus_of_table(table)).read({"q": "x", "a": float("nan")}, (0, 1))
    # The bytes of built-in corpora stay.
    built_in = read("gsm8k", {"question": OBJECT, "answer": ["x", "y"]})
    assert (built_in.question, built_in.answer) == ('{"city":"Rome","year":1}', "x\ny")

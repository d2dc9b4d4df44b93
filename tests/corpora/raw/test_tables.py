"""The rows of CSV and TSV files."""

import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA, Corpus, corpus_of_table
from gristmill.corpora.raw.rows import row_bytes, rows
from gristmill.corpora.raw.texts import Unfit
from gristmill.untrusted.limits import LIMITS, Limits
from tests.reasoning.drops import rows_found


def test_the_first_row_names_the_columns_and_a_cell_may_have_lines(tmp_path):
    text = b'\xef\xbb\xbfquestion,answer\r\n"a ""b""\r\nc",1\r\n\r\n,\xc3\xa4\r\n'
    assert rows_found(tmp_path / "x.csv", text) == [
        (1, {"question": 'a "b"\r\nc', "answer": "1"}),
        (2, {"question": None, "answer": "ä"}),
    ]
    path = tmp_path / "x.csv"
    path.write_text('q,a,b\n"Oh, dear.\nThen, at last,\nshe said, no.",1,x\n"a\nb",2,y\n')
    assert [row["a"] for _, row in rows(path, _own()) if isinstance(row, dict)] == ["1", "2"]


def test_a_tsv_may_have_names_of_columns_and_that_of_flan_has_none(tmp_path):
    text = b'question\tanswer\n"a\tb"\tc, d\n'
    expected = [(1, {"question": "a\tb", "answer": "c, d"})]
    assert rows_found(tmp_path / "x.tsv", text) == expected
    assert rows_found(tmp_path / "x.tsv", text, "cot_collection") == expected
    public = b"source\ttarget\nq\ta\n"
    assert rows_found(tmp_path / "x.tsv", public, "cot_collection") == [
        (1, {"source": "q", "target": "a"})
    ]
    text = b'a\\nb\t"yes"\tc\\\\nd\\t\r\n\nx\ty\n\xff\ty\tz\nq\ta\tr'
    assert rows_found(tmp_path / "sums_train.tsv", text, "cot_collection") == [
        (1, {"flan_cot": "sums", "question": "a\nb", "answer": '"yes"', "rationale": "c\\\nd\\t"}),
        (3, "columns"),
        (4, "utf8"),
        (5, {"flan_cot": "sums", "question": "q", "answer": "a", "rationale": "r"}),
    ]


def test_blanks_around_names_go_and_rows_of_other_cells_are_refused(tmp_path):
    text = b"question, answer ,\tmore\nq, #### 4 , \n"
    expected = [(1, {"question": "q", "answer": " #### 4 ", "more": " "})]
    assert rows_found(tmp_path / "x.csv", text) == expected
    assert rows_found(tmp_path / "x.csv", b"\xef\xbb\xbf " + text) == expected
    # Two names that differ in blanks alone stay two.
    assert rows_found(tmp_path / "x.csv", b"a, a\n1,2\n") == [(1, {"a": "1", " a": "2"})]
    public = b"source \t target\nq\ta\n"
    assert rows_found(tmp_path / "x.tsv", public, "cot_collection") == [
        (1, {"source": "q", "target": "a"})
    ]
    assert rows_found(tmp_path / "x.csv", b"a,b\n1\n1,2,3\n\xff,2\n1,2\n") == [
        (1, "columns"),
        (2, "columns"),
        (3, "utf8"),
        (4, {"a": "1", "b": "2"}),
    ]


@pytest.mark.parametrize("text", [b"", b"a,b\n", b"a,b"])
def test_a_table_may_have_no_row(tmp_path, text):
    assert rows_found(tmp_path / "x.csv", text) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"a,a\n", "has the column 'a' twice"),
        (b",".join(b"%d" % number for number in range(10_001)), "more than 10,000 columns"),
        (b'a,b\n"1,2', "is no table: unexpected end"),
        (b"a,b\n1\r2,3\n", "a cell that is not in quotes holds a CR: write such cells in quotes"),
        (b'a,b\n"1"x,2\n', 'is no table: .*: in quotes a quote is written twice, as ""'),
        (b'a,b\n1,2\n"' + b"x\n" * 300, r"x\.csv:2: a row of more than 200 bytes"),
    ],
)
def test_a_file_that_is_no_table_fails(tmp_path, text, rule):
    limits = Limits(line_bytes=200) if b"x\n" * 300 in text else LIMITS
    with pytest.raises(BadInput, match=rule):
        rows_found(tmp_path / "x.csv", text, limits=limits)


SWALLOWED = {
    "a tab in a cell of two lines": b'q\ta\n"one\t1\ntwo"\t2\n',
    "whole rows in a cell": b'q,a,b\n"one,1,x\n' + b"two,2,y\n" * 5 + b'three",3,z\n',
}


def _own(**more: object) -> Corpus:
    return corpus_of_table({"schema": 1, "name": "mine", "question": "q", "answer": "a", **more})


@pytest.mark.parametrize("text", SWALLOWED.values(), ids=SWALLOWED)
def test_a_cell_that_may_hold_rows_is_named_until_the_recipe_says_what_quotes_are(tmp_path, text):
    path = tmp_path / ("x.tsv" if b"\t" in text else "x.csv")
    path.write_bytes(text)
    ((number, refused),) = rows(path, _own())
    assert isinstance(refused, Unfit) and (number, refused.reason) == (1, "columns")
    assert "its q holds" in refused.rule and "quotes = false" in refused.rule
    ((_, whole),) = rows(path, _own(quotes=True))
    assert isinstance(whole, dict) and "\n" in whole["q"]
    found = [row for _, row in rows(path, _own(quotes=False))]
    assert isinstance(found[0], dict) and found[0]["q"] == '"one' and len(found) > 1
    last = row_bytes(path, _own(quotes=False), len(found))["raw_bytes"]
    begin, end = map(int, str(last).split("-"))
    assert path.read_bytes()[begin:end].startswith((b'two"', b'three"'))


@pytest.mark.parametrize(("name", "mark"), [("x.csv", b","), ("x.tsv", b"\t")])
def test_a_row_of_too_many_cells_is_refused_before_it_is_cut(tmp_path, name, mark):
    limits = Limits(values=10)
    path = tmp_path / name
    path.write_bytes(mark.join([b"question", b"answer"]) + b"\n" + mark * 10 + b"\n" + mark * 11)
    read = rows(path, CORPORA["gsm8k"], limits=limits)
    assert isinstance(next(read)[1], Unfit)
    with pytest.raises(BadInput, match="more than 10 delimiters") as raised:
        next(read)
    assert raised.value.row == 2


@pytest.mark.parametrize(
    "text",
    [
        'question;answer\nWhy?;"a;b"\n',
        "question\tanswer\nWhy?\ta;b\n",
        "question|answer|\nWhy?|a;b|\n",
        'sep=;\r\nquestion;answer\r\nWhy?;"a;b"\r\n',
        '"question";"answer, if any";answer\nWhy?;,;"a;b"\n',
        ",question,answer,\n0,Why?,a;b,\n",
    ],
)
def test_a_csv_may_have_other_delimiters_and_columns_without_a_name(tmp_path, text):
    path = tmp_path / "x.csv"
    ((number, row),) = rows_found(path, b"\xef\xbb\xbf" + text.encode())
    assert (number, row["question"], row["answer"]) == (1, "Why?", "a;b")
    (place,) = row_bytes(path, CORPORA["gsm8k"], 1).values()
    begin, end = map(int, str(place).split("-"))
    assert (
        b"Why?" in path.read_bytes()[begin:end] and b"question" not in path.read_bytes()[begin:end]
    )


def test_a_csv_without_names_has_those_of_its_rule_and_lines_may_end_in_cr(tmp_path):
    rule = {"files": "*.csv", "columns": ["q", "a"]}
    table = {"schema": 1, "name": "mine", "question": "q", "answer": "a", "headerless": rule}
    corpus, path = corpus_of_table(table), tmp_path / "x.csv"
    path.write_text('"Why,\nthen?",1\nb\nHow?,2\n')
    one, two, three = rows(path, corpus)
    assert (one, three) == ((1, {"q": "Why,\nthen?", "a": "1"}), (3, {"q": "How?", "a": "2"}))
    assert isinstance(two[1], Unfit) and two[1].rule.endswith("`headerless` names 2")
    assert row_bytes(path, corpus, 3) == {"raw_bytes": "17-23"}
    path.write_text("q,a\nHow?,2\n")  # the names are there
    assert list(rows(path, corpus)) == [(1, {"q": "How?", "a": "2"})]
    text = b'question,answer\r"a\nb","c\rd"\re,f\r'
    assert rows_found(tmp_path / "x.csv", text.replace(b"\n", b" ")) == [
        (1, {"question": "a b", "answer": "c\nd"}),
        (2, {"question": "e", "answer": "f"}),
    ]
    flan = {"flan_cot": "x", "question": "q", "answer": "a", "rationale": "r"}
    assert rows_found(tmp_path / "x.tsv", b"q\ta\tr\rq\ta\tr\r", "cot_collection") == [
        (1, flan),
        (2, flan),
    ]
    # A cell may hold one.
    assert rows_found(tmp_path / "x.tsv", b"q\ta\tr\rs", "cot_collection") == [
        (1, flan | {"rationale": "r\rs"})
    ]

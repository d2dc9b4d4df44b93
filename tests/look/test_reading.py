"""Files are read by heads, tails and footers, or whole; what is wrong with one is said of it."""

import gzip
import json
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.corpora import account
from gristmill.corpora.account import of_parquet
from gristmill.corpora.raw.parquet import footers
from gristmill.look import reading
from gristmill.look.reading import Reading, listed, read_rows
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule


def line(number: int) -> str:
    return json.dumps({"question": f"How many are {number}?", "answer": str(number)}) + "\n"


def looked(path: Path, *, is_all: bool = False) -> Reading:
    found = listed(path, REFUSE_LINKS)
    read_rows(found, REFUSE_LINKS, is_all=is_all)
    return found


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is small enough to be read whole, and two rows of each are kept."""
    monkeypatch.setattr(reading, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(reading, "_ROWS", 2)
    monkeypatch.setattr(reading, "_LEAST_ROWS", 2)


def test_small_files_are_counted_and_others_and_hidden_ones_are_not_read(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(map(line, range(5))))
    (tmp_path / "README.md").write_text("x")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/b.jsonl").write_text("{}")
    (tmp_path / "._a.jsonl").write_text("{}")
    found = looked(tmp_path)
    assert [(file.name, file.rows, file.is_exact) for file in found.files] == [("a.jsonl", 5, True)]
    assert found.others == {"README.md": 1}
    assert found.columns.by_name["answer"].filled == 5


@pytest.mark.usefixtures("few")
def test_rows_of_large_files_are_estimated_by_their_head(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(line(1) for _ in range(1000)))
    (file,) = looked(tmp_path).files
    assert not file.is_exact
    assert 900 < file.rows < 1300
    assert len(file.sample) == 2
    found = looked(tmp_path, is_all=True)
    assert (found.files[0].is_exact, found.files[0].rows, found.columns.rows) == (True, 1000, 1000)


@pytest.mark.usefixtures("few")
def test_a_large_file_that_ends_in_a_row_is_cut(tmp_path):
    text = "".join(map(line, range(1000)))
    (tmp_path / "a.jsonl").write_text(text[:-9])
    (tmp_path / "b.jsonl").write_text(text.replace('"1"', "NaN"))
    one, other = looked(tmp_path).files
    assert one.damage == ["its last line is no JSON: was it cut? get it again"]
    assert other.damage == []


@pytest.mark.usefixtures("few")
def test_of_very_many_files_some_are_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FILES", 3)
    for number in range(9):
        (tmp_path / f"{number}.jsonl").write_text(line(number))
    assert [file.name for file in looked(tmp_path).files if file.is_read] == [
        "0.jsonl",
        "4.jsonl",
        "8.jsonl",
    ]
    assert all(file.is_read for file in looked(tmp_path, is_all=True).files)


def test_parquet_has_its_rows_in_the_footer_and_bytes_are_not_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    images = pa.array([b"\xff", b"\xfe"], pa.binary())
    nested = pa.array([{"bytes": b"\xff"}] * 2)
    table = pa.table({"q": ["a", "b"], "image": images, "nested": nested})
    pq.write_table(table, tmp_path / "a.parquet")
    (file,) = looked(tmp_path).files
    said = ["image, nested: bytes, not read: write texts as strings"]
    assert (file.rows, file.is_exact, file.damage) == (2, True, said)
    assert [row["q"] for row in file.sample] == ["a", "b"]


def test_a_table_without_names_of_columns_is_known_by_its_cells(tmp_path):
    (tmp_path / "a.tsv").write_text(f"{'How many? ' * 9}\t2\tOne,\\ntwo.\nb\t3\tc\n")
    (tmp_path / "b.tsv").write_text("q\ta\nb\t3\n")
    # Numbers beside a question are names of columns.
    (tmp_path / "c.csv").write_text("Question,1,2,Answer\nWhy?,a,b,1\n")
    one, other, numbered = looked(tmp_path).files
    assert numbered.sample == [{"Question": "Why?", "1": "a", "2": "b", "Answer": "1"}]
    assert one.rows == 2
    assert one.headerless == {"columns": ["question", "answer", "rationale"], "newline": "\\n"}
    assert one.sample[0]["rationale"] == "One,\ntwo."
    assert other.sample == [{"q": "b", "a": "3"}]


def test_commands_of_latex_are_no_newlines(tmp_path):
    (tmp_path / "a.tsv").write_text("Is $x \\neq 1$ here?\tyes\nIs it $\\nu$?\tno\n")
    (file,) = looked(tmp_path).files
    assert [row["question"] for row in file.sample] == ["Is $x \\neq 1$ here?", "Is it $\\nu$?"]
    assert "newline" not in file.headerless


def test_a_cell_of_the_first_row_may_have_several_lines(tmp_path):
    row = '"Why is it so?","One.\n\nTwo, three.",3\n'
    (tmp_path / "a.csv").write_text(row + row)
    (file,) = looked(tmp_path).files
    assert (file.rows, len(file.headerless["columns"]), file.damage) == (2, 3, [])


def test_a_first_line_that_is_no_table_is_damage(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"question,is it\0?\ra\0\r,b\r\0\n")
    (tmp_path / "b.csv").write_text("\n")
    found = {file.name: file for file in looked(tmp_path).files}
    assert found["a.csv"].is_broken and found["b.csv"].damage == ["holds no row"]


def test_damage_is_said_of_its_file_and_the_others_are_read(tmp_path):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (tmp_path / "a.jsonl").write_text(pointer)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(line(1).encode() * 50)[:-9])
    (tmp_path / "c.jsonl").write_text("[1]\n" + line(1))
    (tmp_path / "d.parquet").write_bytes(b"PAR1")
    (tmp_path / "e.csv").write_text("")
    (tmp_path / "f.jsonl").write_text(line(1))
    (tmp_path / "g.csv").write_text("question,answer\nO\u00f9?,l\u00e0\n", "latin-1")
    # What JSON libraries refuse is read.
    odd = '{"a": 1e999, "b": NaN, "c": "\\ud83d", "d": ' + "9" * 30 + "}"
    (tmp_path / "h.jsonl").write_text(odd)
    found = {file.name: " ".join(file.damage) for file in looked(tmp_path).files}
    assert "Git LFS pointer" in found["a.jsonl"]
    assert "gzip" in found["b.jsonl.gz"]
    assert "row 1: is no JSON object" in found["c.jsonl"]
    assert "Parquet" in found["d.parquet"]
    assert found["e.csv"] == "holds no row"
    assert found["f.jsonl"] == found["h.jsonl"] == ""
    assert found["g.csv"] == "row 1: is not UTF-8: save the file as UTF-8"


def test_rows_that_are_there_twice_are_noted(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(line(1) + line(2))
    assert looked(tmp_path).notes == ["2 of 4 rows read are equal to an earlier one"]


def test_links_are_refused_by_name_and_followed_where_a_rule_says_so(tmp_path):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/x").write_text(line(1))
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/a.jsonl").symlink_to(tmp_path / "blobs/x")
    assert "follow_links" in listed(tmp_path / "drop", REFUSE_LINKS).refused["a.jsonl"]
    followed = LinkRule(follow=True, roots=(str(tmp_path / "blobs"),))
    assert [file.name for file in listed(tmp_path / "drop", followed).files] == ["a.jsonl"]


def test_a_folder_that_cannot_be_read_is_bad_input(tmp_path):
    deep = tmp_path
    for _ in range(70):
        deep = deep / "d"
    deep.mkdir(parents=True)
    with pytest.raises(BadInput, match="nested deeper"):
        listed(tmp_path, REFUSE_LINKS)


LARGE = json.dumps({"question": "Why?", "answer": "x" * (3 << 20)}) + "\n"


def test_a_first_row_that_is_larger_than_the_sample_hides_no_other(tmp_path):
    (tmp_path / "a.jsonl").write_text(LARGE + "".join(map(line, range(5))))
    (file,) = looked(tmp_path).files
    assert (len(file.sample), file.rows) == (6, 6)


@pytest.mark.usefixtures("few")
def test_rows_of_files_with_large_rows_are_estimated_by_their_bytes(tmp_path):
    (tmp_path / "a.jsonl").write_text(LARGE * 4)
    (file,) = looked(tmp_path).files
    assert (len(file.sample), file.rows, file.is_exact) == (2, 4, False)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('["Why?", "So."]\n["Who?", "I."]\n', "text after the JSON value: write an object a line"),
        ('[["Why?", "So."]]', 'row 1: is no JSON object: write an object a line, as {"messages"'),
        ('{"q": "Why?"},\n{"q": "Who?"},\n', "(char 13): write an object a line with no comma"),
        (
            '[{"q": "Why?"},]',
            "row 2: not JSON: Expecting value: line 1 column 1 (char 0): write an",
        ),
    ],
)
def test_what_is_no_row_is_said_with_the_form_to_write(tmp_path, text, rule):
    (tmp_path / "a.json").write_text(text)
    assert rule in "\n".join(looked(tmp_path).files[0].damage)


def parquet(folder: Path, *names: str, rows: int = 3) -> list[Path]:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for name in names:
        table = pa.table({"q": [f"{name} {n}?" for n in range(rows)], "image": [b"\xff"] * rows})
        pq.write_table(table, folder / name)
    return [folder / name for name in names]


def test_footers_come_from_one_child_and_a_broken_file_spoils_no_other(tmp_path, monkeypatch):
    one, two = parquet(tmp_path, "a.parquet", "b.parquet")
    cut, text = tmp_path / "c.parquet", tmp_path / "d.parquet"
    cut.write_bytes(one.read_bytes()[:-9])
    text.write_text("question,answer\n")
    calls = []
    run = account.child.run
    monkeypatch.setattr(account.child, "run", lambda *a, **k: calls.append(1) or run(*a, **k))
    found = of_parquet(footers, [one, cut, text, two, tmp_path / "gone.parquet"], REFUSE_LINKS)
    good = (["q", "image"], ["image"], 3)
    assert [found[path] for path in (one, two)] == [good, good]
    assert "is not a readable Parquet file" in found[cut]
    assert "is no Parquet file" in str(found[text])
    assert (len(found), len(calls)) == (5, 1)
    assert of_parquet(footers, [], REFUSE_LINKS) == {}
    said = {file.name: file.damage for file in looked(tmp_path).files}
    assert "is not a readable Parquet file" in said["c.parquet"][0]


@pytest.mark.usefixtures("few")
def test_a_file_that_ends_the_child_of_all_footers_spoils_no_other(tmp_path, monkeypatch):
    one, _ = parquet(tmp_path, "a.parquet", "b.parquet")
    run = account.child.run

    def dying(work, paths, *more, **options):
        if one in paths and work is footers:
            raise BadInput(one, "takes more memory than its child may take")
        return run(work, paths, *more, **options)

    monkeypatch.setattr(account.child, "run", dying)
    first, second = looked(tmp_path).files
    assert first.damage == ["takes more memory than its child may take"]
    assert (second.rows, second.damage) == (3, ["image: bytes, not read: write texts as strings"])


def test_rows_are_read_of_a_few_large_files_with_the_same_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_WHOLE_BYTES", 0)
    monkeypatch.setattr(reading, "_MOST_ALIKE", 2)
    parquet(tmp_path, *(f"train-{n}.parquet" for n in range(4)))
    found = looked(tmp_path)
    read = [(file.rows, file.is_exact, len(file.sample)) for file in found.files]
    assert read == [(3, True, 3)] * 2 + [(3, True, 0)] * 2
    assert not any(file.is_broken for file in found.files)

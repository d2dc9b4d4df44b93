"""A look says what is in files, and writes a recipe where that is asked for."""

import gzip
import json
import os
import resource
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.chat.messages import account as account_of_chat
from gristmill.corpora.raw.corpus_file import read_corpus_file
from gristmill.corpora.raw.drops import account, corpus_of
from gristmill.corpora.raw.reader import Reader
from gristmill.corpora.raw.rows import rows
from gristmill.corpora.records import Record
from gristmill.corpora.trial import licence_of
from gristmill.families import catalogs, inboxes
from gristmill.keys import refusal
from gristmill.look.finding import asked, fits, look, write
from gristmill.look.reading import listed
from gristmill.look.report import lines
from gristmill.puzzles.config import read_recipe_file
from gristmill.puzzles.raw.drops import proposal
from gristmill.reasoning.samples import write_drop
from gristmill.untrusted.files import REFUSE_LINKS
from tests.json_lines import jsonl
from tests.look.cards import cards
from tests.macroxue.games import play
from tests.macroxue.step_drops import save, self_play

pytestmark = pytest.mark.usefixtures("games_played_once")

BOARD = "53..7...." * 9
RIGHT = "".join(str((3 * (y % 3) + y // 3 + x) % 9 + 1) for y in range(9) for x in range(9))
CLUES = f"...{RIGHT[3:]}"
MAZE = "#####" + "#S  #" + "# # #" + "#  G#" + "#####"
TASK = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[3]]}]}
SAMPLES = {place: write for each in catalogs() for place, write in each.samples.items()}
FAMILIES = ("chess", "puzzles", "macroxue")
DROPS = [each for each in SAMPLES if each.split("/")[0] in FAMILIES and ".toml" not in each]
CARDS = list(cards())


def gsm(number: int) -> dict[str, str]:
    return {
        "question": f"Mia has {number} plums and buys 2 more. How many has she?",
        "answer": f"She has {number}+2={number + 2} plums.\n#### {number + 2}",
    }


def said(folder: Path) -> str:
    return "\n".join(lines(look(folder)))


GSM = [gsm(number) for number in range(9)]
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
PACKED = gzip.compress((json.dumps(gsm(1)) + "\n").encode() * 99)
ASKS = {"prompt": [{"role": "user", "content": "How many?"}], "answer": "2", "uuid": "u"}
OTHERS = [{"problem": f"Is it {n} now?", "solution": str(n)} for n in range(9)]
SPLIT = [{**row, "split": "test" if n < 2 else "train"} for n, row in enumerate(GSM[:6])]
WRITTEN = [{"question": "Which one is it?", "options": "['a', 'b']"}]
TWO = "train-0000{}-of-00002.jsonl".format
DAMAGE: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "01": (
        "gsm8k",
        {"train.jsonl": GSM[:3], "train_socratic.jsonl": GSM[:3]},
        ["train_socratic.jsonl have the same questions"],
    ),
    "02": ("gsm8k", {TWO(0): GSM, TWO(1): POINTER}, [f"{TWO(1)}: is a Git LFS pointer"]),
    "05": (
        "gsm8k",
        {"train-0.jsonl": GSM[:3], "train-1.jsonl": OTHERS},
        ["train-1.jsonl: the corpus gsm8k reads none of 9 rows"],
    ),
    "09": ("openr1_math_220k", {"train.jsonl": [ASKS]}, ["lacks the column response"]),
    "12": (
        "gsm8k",
        {"gsm8k.json": {"train": GSM[:1], "test": GSM[1:2]}},
        ["gsm8k.json: holds the splits train, test"],
    ),
    "16": (
        "gsm8k",
        {"train.jsonl.gz": PACKED[:-12]},
        ["train.jsonl.gz: ", "gzip", "read once it is mended"],
    ),
    "31": ("gsm8k", {"train.jsonl": Path("blobs/123")}, ["train.jsonl: is a link", "follow_links"]),
    "32": (
        "gsm8k",
        {n: [gsm(len(n))] for n in ("train.jsonl", "test/data.jsonl", "extended/train-0.jsonl")},
        ["extended/train-0.jsonl", "test/data.jsonl", "not read by reasoning"],
    ),
    "key": (
        "own",
        {"train.json": {"version": 1, "data": GSM[:2]}},
        ["holds its rows in a list under 'data'"],
    ),
    "ids": (
        "own",
        {"train.json": {f"q{n}": row for n, row in enumerate(GSM[:4])}},
        ["holds a row under each of its keys"],
    ),
    "folders": (
        "own",
        {"main/train.jsonl": GSM[:3], "more/train.jsonl": OTHERS[:3]},
        ["configurations of one dataset: put all but one into"],
    ),
    "split": (
        "own",
        {"all.jsonl": SPLIT},
        ["train (4), test (2)", 'column = "split", equals = "train"'],
    ),
    "packed": ("own", {"train.jsonl": PACKED}, ["train.jsonl: is gzip"]),
    "twice": (
        "own",
        {"a.jsonl": GSM[:2], "b.jsonl": GSM[:2]},
        ["b.jsonl has the bytes of a.jsonl: two splits have"],
    ),
    "texts": ("own", {"train.jsonl": WRITTEN}, ["options: lists or objects written as text"]),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_a_build_would_fail_by_is_said(case, tmp_path):
    name, files, expected = DAMAGE[case]
    for file, content in files.items():
        (place := tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            jsonl(place, content)
        elif isinstance(content, Path):
            jsonl(tmp_path / content, GSM[:1])
            place.symlink_to(tmp_path / content)
        else:
            place.write_bytes(content if type(content) is bytes else json.dumps(content).encode())
    found = said(tmp_path / name)
    assert [part for part in expected if part not in found] == [], found


@pytest.mark.parametrize("corpus", CORPORA)
def test_a_sample_drop_of_a_corpus_is_read_as_it_is(corpus, tmp_path):
    write_drop(tmp_path / corpus, corpus)
    assert [taker.inbox for taker in look(tmp_path / corpus).takers] == ["reasoning"]


def test_a_folder_of_a_stranger_gets_a_recipe_that_is_written_once(tmp_path):
    folder = tmp_path / "My Math"
    rows = [
        {"problem": f"How many are {n}?", "qwq": "so " * 99 + n, "solution": str(n)} for n in "123"
    ]
    jsonl(folder / "train.jsonl", rows)
    found = look(folder)
    assert str(found.parts[0].guess) == "qa: question = problem, answer = solution, thought = qwq"
    assert not (folder / "corpus.toml").exists()
    assert write(found).read_text() == found.proposal.text
    assert 'name = "my_math"' in found.proposal.text
    with pytest.raises(GristmillError, match="is there already: move it away"):
        write(found)


def records(drop: Path) -> list[Record]:
    """What the corpus of a drop reads of its files."""
    corpus = corpus_of(drop)
    reader = Reader(corpus)
    files = [name for names in account(drop).taken.values() for name in names]
    read = [row for file in files for _, row in rows(drop / file, corpus)]
    found = [reader.read(row, (0, 1)) for row in read if isinstance(row, dict)]
    return [record for record in found if record is not None]


@pytest.mark.parametrize("card", CARDS, ids=[card.line[:60] for card in CARDS])
def test_the_recipe_of_a_public_dataset_is_a_corpus_file(card, tmp_path):
    jsonl(tmp_path / "own/train.jsonl", card.rows)
    found = look(tmp_path / "own")
    if found.takers or not found.proposal.good:
        assert card.right["form"][0] not in ("instruct", "text"), found.proposal
        return
    if not any(kind in card.line for kind in ("choices", "options")):  # made-up answers are none
        assert (found.proposal.good, found.proposal.refused) == (len(card.rows), {})
    write(found)
    if found.proposal.inbox == "chat":
        assert account_of_chat(tmp_path / "own").taken
    else:
        assert read_corpus_file(tmp_path / "own/corpus.toml", "own").forms


def test_the_recipe_of_one_file_takes_a_rule_that_divides_it(tmp_path):
    jsonl(tmp_path / "mine/problems.jsonl", [gsm(number) for number in range(9)])
    path = write(look(tmp_path / "mine"))
    assert "files" not in path.read_text()
    path.write_text(path.read_text() + "split = { test = 0.1 }\n")
    taken = account(tmp_path / "mine").taken
    assert list(taken) == ["train", "test"]


def test_a_column_that_the_corpus_file_names_and_no_row_has_is_said(tmp_path):
    jsonl(tmp_path / "mine/train.jsonl", [gsm(number) for number in range(9)])
    text = 'schema = 1\nname = "mine"\nquestion = "question"\nanswer = "answer"\ncot = "anwser"\n'
    (tmp_path / "mine/corpus.toml").write_text(text)
    rule = 'note: corpus.toml: cot: no row has a column "anwser": did you mean "answer"?'
    assert rule in said(tmp_path / "mine")
    rows = [{**gsm(number), "lang": "en"} for number in range(9)]
    jsonl(tmp_path / "mine/train.jsonl", rows), jsonl(tmp_path / "mine/test.jsonl", [gsm(10)])
    keep = 'keep = [{ column = "lang", in = ["en"] }]\n'
    (tmp_path / "mine/corpus.toml").write_text(text.replace("anwser", "answer") + keep)
    assert 'note: corpus.toml: test: keep: no row has a column "lang"' in said(tmp_path / "mine")


def test_one_file_is_looked_at(tmp_path):
    jsonl(tmp_path / "sums.jsonl", [gsm(1)])
    found = look(tmp_path / "sums.jsonl")
    assert (found.name, found.proposal.good) == ("sums", 1)


def test_nothing_is_written_where_nothing_was_understood_or_a_family_reads_it(tmp_path):
    jsonl(tmp_path / "own/a.jsonl", [{"id": "x", "score": 1}])
    with pytest.raises(GristmillError, match="no recipe reads"):
        write(look(tmp_path / "own"))
    jsonl(tmp_path / "gsm8k/train.jsonl", [gsm(1)])
    with pytest.raises(GristmillError, match="reasoning reads the files as they are"):
        write(look(tmp_path / "gsm8k"))
    jsonl(
        tmp_path / "odd/a.jsonl",
        [{"question": None, "question\ud83d": "How many are there?", "answer": 2}],
    )
    with pytest.raises(GristmillError, match="is not written"):
        write(look(tmp_path / "odd"))


def test_an_empty_folder_holds_nothing(tmp_path):
    assert ": 0 files, 0 bytes" in said(tmp_path)


def test_a_recipe_that_the_file_would_refuse_is_not_proposed(tmp_path):
    for split in ("train_sft", "test_sft", "train_gen"):
        jsonl(tmp_path / f"own/{split}-00000.jsonl", [gsm(len(split))])
    write(look(tmp_path / "own"))
    assert list(account(tmp_path / "own").taken) == ["test", "traingen", "trainsft"]
    many = {f"column {n}": 1 for n in range(20)}
    jsonl(tmp_path / "deep/train.jsonl", [{"question": "How many?", "answer": "2", **many}])
    found = look(tmp_path / "deep", name="Not A Name")
    assert (found.proposal.text, found.proposal.good) == ("", 0)


def test_tables_without_names_or_with_semicolons_come_to_records(tmp_path):
    texts = {
        "a": "Why is it so?,2\nHow is it so?,3\n",
        "b": "question;answer\nWhy is it so?;2\nHow is it so?;3\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.csv").write_text(text)
        write(look(tmp_path / name))
        assert [each.question for each in records(tmp_path / name)] == [
            *("Why is it so?", "How is it so?")
        ]


def test_choices_of_a_table_without_names_are_read_by_their_letters(tmp_path):
    text = "How many are two and two?,3,4,5,B\nWhat is it?,one,two,three,A\n"
    for name in ("sums_dev.csv", "sums_test.csv"):
        (tmp_path / name).write_text(text)
    assert "columns are called question, A, B, C, answer: see" in said(tmp_path)
    write(look(tmp_path))
    made = [(each.question, each.answer) for each in records(tmp_path)]
    assert made == 2 * [
        ("How many are two and two?\n\nA) 3\nB) 4\nC) 5", "4"),
        ("What is it?\n\nA) one\nB) two\nC) three", "one"),
    ]


TEXTS = {
    "README.md": ("---\nlicense: cc-by-nc-4.0\n---\nUnder the MIT License.", "CC-BY-NC-4.0"),
    "LICENSE": ("MIT License\n\nCopyright (c) 2020 somebody", "MIT"),
    "LICENCE.txt": ("   Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
    "dataset_card.md": ("license: openrail", "openrail"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_card_or_a_licence_file_says_it(name, tmp_path):
    text, licence = TEXTS[name]
    (tmp_path / name).write_text(text)
    assert licence_of(tmp_path, [name], REFUSE_LINKS) == (licence, name)


def test_other_files_and_links_say_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("MIT License")
    (tmp_path / "LICENSE").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "README.md").write_bytes(b"\xff\xfe")
    names = ["notes.txt", "LICENSE", "README.md", "README.gone"]
    assert licence_of(tmp_path, names, REFUSE_LINKS) == ("", "")


TALK = [{"role": "user", "content": "Which, {n}?"}, {"role": "assistant", "content": "This."}]
LONG = "A long story about the number {n} and the people of a small town."


@pytest.mark.parametrize(
    ("row", "note"),
    [
        (
            {"Document": LONG, "Question": "How many are there, {n}?", "Answer": "1"},
            "not read: Document (as ",
        ),
        ({"conversation_a": TALK, "conversation_b": TALK}, "not read: conversation_b (as "),
        (
            {"question": "Which one is it, of the {n}?", "answer": "Which one is it, of {n}?"},
            "answer repeats question but for a few words",
        ),
        ({"question": "Which one is it, {n}?", "options": ["x", "y"], "answer": "A"}, ""),
        ({"question": "Is it, {n}?", "context": LONG, "answer": "The {n}th"}, ""),
        ({"question": "Is it, {n}?", "answer": True}, ""),
    ],
)
def test_what_the_recipe_does_not_read_is_noted(tmp_path, row, note):
    texts = (json.dumps(row).replace("{n}", str(number)) for number in range(6))
    (tmp_path / "train.jsonl").write_text("\n".join(texts))
    found = look(tmp_path)
    assert found.proposal.good == 6
    others = [each for each in found.columns if not each.startswith("read: ")]
    assert len(others) < len(found.columns)
    others += found.notes
    assert note in "\n".join(others) if note else not others


def test_a_file_without_answers_is_left_and_said_beside_others(tmp_path):
    rows = [
        {"question": f"Which one is {n}?", "options": ["x", "y"], "answer": n % 2} for n in range(4)
    ]
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "train.jsonl").write_text(lines)
    (tmp_path / "test.jsonl").write_text(
        lines.replace('"answer": 0', '"answer": -1').replace('"answer": 1', '"answer": -1')
    )
    found = look(tmp_path, name="own")
    table = tomllib.loads(found.proposal.text)
    assert (table["leave"], table["files"]) == (["test.jsonl"], {"train": "train.jsonl"})
    assert found.proposal.good == found.proposal.rows == 4
    said = "test.jsonl: no row gives a record (answer is '-1', none of 2 choices): `leave` names it"
    assert said in [*found.notes, *found.columns]
    (tmp_path / "train.jsonl").unlink()
    assert "leave" not in tomllib.loads(look(tmp_path, name="own").proposal.text)


def test_files_that_the_recipe_leaves_out_have_no_questions_in_common(tmp_path):
    drop = tmp_path / "mine"
    jsonl(drop / "a.jsonl", [gsm(number) for number in range(8)])
    jsonl(drop / "b.jsonl", [{"question": gsm(n)["question"], "k": n} for n in range(8)])
    found = look(drop)
    assert tomllib.loads(found.proposal.text)["leave"] == ["b.jsonl"]
    assert "the same questions" not in said(drop)
    jsonl(drop / "b.jsonl", [{**gsm(n), "k": n} for n in range(8)])
    assert "a.jsonl and b.jsonl have the same questions" in said(drop)


def test_one_question_in_two_splits_is_named_with_both_places(tmp_path):
    jsonl(tmp_path / "train.jsonl", [gsm(number) for number in range(8)])
    jsonl(tmp_path / "test.jsonl", [gsm(number) for number in (50, 60, 3)])
    where = "(1 of 3), first test.jsonl row 3 and train.jsonl row 4, in test and train"
    assert where in said(tmp_path)
    talks = [{"messages": [*TALK[:1], {**TALK[1], "content": str(n)}]} for n in range(3)]
    jsonl(tmp_path / "chat/train.jsonl", talks)
    jsonl(tmp_path / "chat/test.jsonl", [{"messages": TALK}])
    assert "first test.jsonl row 1 and train.jsonl row 1, in test and train" in said(
        tmp_path / "chat"
    )


def test_files_of_other_kinds_are_left_and_a_drop_that_is_refused_is_said(tmp_path):
    jsonl(tmp_path / "qa.jsonl", [gsm(number) for number in range(8)])
    jsonl(tmp_path / "books.jsonl", [{"text": "A long story. " * 9 + str(n)} for n in range(4)])
    assert tomllib.loads(look(tmp_path).proposal.text)["leave"] == ["books.jsonl"]
    assert "books.jsonl: its rows are text, those of qa.jsonl qa: `leave`" in said(tmp_path)
    (tmp_path / "qa (1).jsonl").write_bytes((tmp_path / "qa.jsonl").read_bytes())
    assert "a drop with it is refused: qa (1).jsonl: is named as a copy of qa" in said(tmp_path)


def test_answers_of_two_meanings_are_not_read_by_two_forms(tmp_path):
    jsonl(tmp_path / "a.jsonl", [{**gsm(n), "solution": "So it is, at last."} for n in range(8)])
    rows = [{"question": f"How many are {n}?", "solution": "So it is."} for n in range(4)]
    jsonl(tmp_path / "b.jsonl", rows)
    found = look(tmp_path)
    assert tomllib.loads(found.proposal.text)["leave"] == ["b.jsonl"]
    assert "b.jsonl: its answers are in solution, those of a.jsonl in answer" in said(tmp_path)


ASKED = "Which town had the {n}th market, and why?"


def test_what_nothing_reads_is_named_with_an_example_and_facts_with_what_they_are(tmp_path):
    rows = [
        {"question": ASKED.format(n=n), "answer": f"Town {n}", "old_text": f"x = {n}"}
        | {"url": f"https://a.example/{n}", "kind": "a", "is_right": n % 2}
        for n in range(12)
    ]
    jsonl(tmp_path / "train.jsonl", rows)
    said = "\n".join(look(tmp_path).columns)
    assert 'keep = [{ column = "is_right", equals = 1 }]' in said
    assert 'not read: old_text (as "x = 0"), kind (as "a")' in said
    assert "facts of the rows, not read: url (address)" in said
    assert "read: question (question), answer (answer)" in said


@pytest.mark.parametrize("place", DROPS)
def test_a_sample_drop_is_read_by_its_family(place, tmp_path):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    SAMPLES[place](path)
    taken, _ = asked(listed(path, REFUSE_LINKS), REFUSE_LINKS)
    assert [taker.inbox for taker in taken] == [place.split("/")[0]]
    assert taken[0].command == f"gristmill drop --family {taken[0].inbox} {path}"


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("puzzles/my grids (2)", "my_grids_2"),
        ("puzzles/\N{GREEK SMALL LETTER ALPHA}", "drop"),
        ("puzzles/a_b-1.5", ""),
        ("chess/Elite 2024-01 (1).PGN", "Elite_2024-01_1"),
    ],
)
def test_a_name_that_no_drop_may_have_gets_another_one(place, name, tmp_path):
    path = tmp_path / place
    path.parent.mkdir()
    SAMPLES[next(each for each in DROPS if each.startswith(place.partition("/")[0]))](path)
    taken, _ = asked(listed(path, REFUSE_LINKS), REFUSE_LINKS)
    option = f" --name {name}" if name else ""
    assert taken[0].command.startswith(f"gristmill drop --family {taken[0].inbox}{option} ")
    assert refusal(name or path.name) is None
    if taken[0].recipe:
        assert f'sources = ["{name or path.name}"]' in taken[0].recipe


@pytest.mark.parametrize("place", [each for each in SAMPLES if ".toml" not in each])
def test_a_file_that_was_hardly_written_is_refused_unread(place, tmp_path):
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    SAMPLES[place](path)
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    largest = max((each for each in files if each.is_file()), key=lambda each: each.stat().st_size)
    inbox = inboxes()[place.split("/")[0]]
    inbox.account(path, REFUSE_LINKS)
    os.truncate(largest, 50 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with pytest.raises(GristmillError, match="is not read: of its 53,687,091,200 bytes only"):
        inbox.account(path, REFUSE_LINKS)
    said = "\n".join(lines(look(largest)))
    assert "were ever written" in said or "not read by" in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 10


def test_tables_of_texts_and_boards_of_another_size_are_no_puzzles(tmp_path):
    small = "1234341221434321"
    (tmp_path / "sudoku.csv").write_text(f"puzzle,solution\n{small},{small}\n")
    assert look(tmp_path).takers == []
    for name in ("train.csv", "test.csv"):
        (tmp_path / name).write_text("question,answer\nHow many are there?,2\n")
    (tmp_path / "sudoku.csv").unlink()
    found = look(tmp_path)
    assert (found.takers, found.proposal.good) == ([], 2)


def test_parquet_without_the_columns_of_synth_is_not_taken_by_it(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / ".done").touch()
    for number in range(4):
        table = pa.table({"question": ["How many are there?"], "answer": [str(number)]})
        pq.write_table(table, tmp_path / f"train-{number}.parquet")
    taken, _ = asked(listed(tmp_path, REFUSE_LINKS), REFUSE_LINKS)
    assert [taker.inbox for taker in taken] == ["synth"]
    found = look(tmp_path)
    assert not fits(taken[0], found.reading, REFUSE_LINKS)
    assert (found.takers, found.proposal.good) == ([], 4)


TOKENIZER = json.dumps({"added_tokens": [{"id": 0}], "model": {"vocab": {"a": 0}, "merges": []}})
FORMS = {
    "Kaggle": (
        "arc-agi_training_challenges.json",
        json.dumps({"t": TASK}),
        "arc-agi_training_solutions.json: is missing beside arc-agi_training_challenges.json",
    ),
    "Sudokus in lines": (
        "mine.jsonl",
        json.dumps({"done": RIGHT, "puzzle": CLUES, "id": 1}),
        """[print(r["puzzle"] + "," + r["done"]) for r in map(json.loads, open("mine.jsonl"))]""",
    ),
    "tasks in an object": ("a.json", json.dumps({"t": TASK, "u": TASK}), "tasks of ARC in one"),
    "tasks in a list": ("a.json", json.dumps([TASK]), "tasks of ARC in one file"),
    "tasks in lines": ("a.jsonl", f"{json.dumps(TASK)}\n" * 2, "tasks of ARC in one file"),
    "a task in no folder": ("a.json", json.dumps(TASK), "as to training/TASK.json"),
    "grids": (
        "a.jsonl",
        json.dumps({"id": 1, "input": [[1, 2]], "output": [[2, 1]]}),
        "grids in input and output, which `puzzles` does not read in this form",
    ),
    "archive": ("data.tar.gz", "x", "archives: unpack them"),
    "arrow": ("data-00000.arrow", "x", "write Parquet"),
    "arrays": ("games.npz", "x", "if they are boards of 2048, `macroxue` reads them from steps*"),
    "boards": ("moves.csv", "0,2,4,8," * 4 + "1\n" + "2,0,64,0," * 4 + "3\n", "by the 16 cells"),
    "ranks of boards": ("x.jsonl", json.dumps({"b": [[0, 1, 11, 2]] * 4, "m": "up"}), "16 cells"),
    "array": ("steps.npy", "x", '[fields] run_id = "game"'),
    "sheet": ("Book1.xlsx", "x", "save them as CSV"),
    "tokenizer": ("mine.json", TOKENIZER, "--name NAME --eod TEXT"),
    "ranks": ("x.tiktoken", "YQ== 0", "a tokenizer: `gristmill tokenizers FILE"),
    "sentencepiece": ("x.model", "x", "a tokenizer: `gristmill tokenizers FILE"),
    "another ending": ("x.train", '{"question": 1}\n', "rename it to x.train.jsonl"),
    "prose": ("book.txt", "Once.", 'texts = "{text}"'),
    "steps": ("log.jsonl", json.dumps({"board": [0, 2], "move": 1}), "steps of a game"),
    "a log": (
        "d6.jsonl",
        json.dumps({"board": [0, 1] * 8, "move": "up", "branch_evs": {"up": 0.5}}),
        "has its NAME.meta.json beside it",
    ),
}


def test_a_folder_of_games_is_a_collection_and_a_file_of_them_is_named_one(tmp_path):
    games = tmp_path / "twic.pgn"
    games.write_text('[Event "x"]\n[White "J\u00f6rg"]\n\n1. e4 e5 *\n', "latin-1")
    found = look(tmp_path)
    (taker,) = found.takers
    assert (taker.inbox, taker.path) == ("chess", tmp_path)
    assert taker.lines[0] == "1 file taken" and 'encoding = "latin-1"' in taker.lines[1]
    assert (len(taker.lines), taker.columns) == (2, ["read: Event (headers), White (headers)"])
    found = look(games)
    assert found.takers == []
    assert any("any PGNs in a folder of their own" in hint for hint in found.hints)
    assert "not a month that has ended" in found.refused["chess"]


def test_settings_that_the_drop_may_not_have_are_named(tmp_path):
    (folder := tmp_path / "games").mkdir()
    (folder / "a.pgn").write_text('[Event "E"]\n\n1. e4 e5 1-0\n')
    (folder / "gristmill.toml").write_text("[chess.month]\nelo_floor = 2300\n")
    (taker,) = asked(listed(folder, REFUSE_LINKS), REFUSE_LINKS)[0]
    assert taker.inbox == "chess"
    (folder / "gristmill.toml").write_text("[chess.month]\nelo_flor = 2300\n")
    taken, refused = asked(listed(folder, REFUSE_LINKS), REFUSE_LINKS)
    assert not taken
    assert "[chess.month] elo_flor: unknown key: did you mean elo_floor?" in refused["chess"]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_no_family_reads_is_named_with_one_that_is_read(form, tmp_path):
    name, text, said = FORMS[form]
    (tmp_path / name).write_text(text)
    found = look(tmp_path)
    assert found.takers == []
    assert [hint for hint in found.hints if said in hint]
    assert "Sudoku" not in form or not found.proposal.text
    assert not any("holds its rows" in line for line in lines(found))


READ = {
    "Kaggle in a folder": (
        {
            "data/arc_evaluation2_challenges.json": json.dumps({"t": TASK}),
            "data/arc_evaluation2_solutions.json": json.dumps({"t": [[[4]]]}),
        },
        'kind = "arc"\nsources = ["mine/data"]\n[settings]\nevaluation = ["evaluation2"]\n'
        'num_aug = 20\ndtype = "uint8"\n',
    ),
    "Sudoku with a sign": (
        {"sudoku.csv": f"puzzle,solution\n{CLUES.replace('.', '_')},{RIGHT}\n"},
        'kind = "sudoku"\nsources = ["mine"]\n[settings]\nblank = "_"\n',
    ),
    "columns of a Sudoku": (
        {"sudoku.csv": f"clues,filled\n{CLUES},{RIGHT}\n"},
        'kind = "sudoku"\nsources = ["mine"]\n[settings]\nquestion_column = "clues"\n'
        'answer_column = "filled"\n',
    ),
    "Sudokus and a bad row": (
        {"sudoku.csv": "puzzle,solution\n" + f"{CLUES},{RIGHT}\n" * 30 + "1,2"},
        'kind = "sudoku"\nsources = ["mine"]\n',
    ),
    "Kaggle": (
        {
            "arc-agi_evaluation2_challenges.json": json.dumps({"t": TASK}),
            "arc-agi_evaluation2_solutions.json": json.dumps({"t": [[[4]]]}),
        },
        'kind = "arc"\nsources = ["mine"]\n[settings]\nevaluation = ["evaluation2"]\n'
        'num_aug = 20\ndtype = "uint8"\n',
    ),
    "Sudoku": (
        {"sudoku.csv": f"quizzes,solutions\n{CLUES},{RIGHT}\n"},
        'kind = "sudoku"\nsources = ["mine"]\n',
    ),
    "mazes": (
        {f"{split}.csv": f"question,answer\n{MAZE},{MAZE}\n" for split in ("train", "test")},
        'kind = "maze"\nsources = ["mine"]\n',
    ),
    "grids": (
        {"a.jsonl": json.dumps({"input": [[1, 2]], "output": [[2, 6]], "group": "g"})},
        'kind = "grid"\nsources = ["mine"]\n[settings]\nvalues = 7\n',
    ),
    "texts": (
        {"a.jsonl": json.dumps({"input": ['#"🟥'], "output": [".#"]})},
        'kind = "grid"\nsources = ["mine"]\n[settings]\nalphabet = "\\"#.🟥"\n',
    ),
}


def test_rows_behind_the_first_one_may_be_anything(tmp_path):
    first = json.dumps({"input": [[1]], "output": [[0]]})
    odd = ["[]", "7", '{"input": 3}', '{"input": [4, null, [null, [9], "ab", -1, 2]]}']
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a.jsonl").write_text("\n".join([first, "", *odd]) + "\n")
    assert "values = 3" in proposal(tmp_path / "mine")


@pytest.mark.parametrize("form", READ)
def test_a_form_that_a_recipe_reads_is_taken_with_the_recipe_to_write(form, tmp_path):
    files, recipe = READ[form]
    for name, text in files.items():
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_text(text + "\n")
    found = look(tmp_path / "mine")
    assert [(taker.inbox, taker.recipe) for taker in found.takers] == [("puzzles", recipe)]
    said = "\n".join(lines(found))
    assert any("on disk while it builds" in each for each in found.takers[0].lines)
    assert "read as it is: " in said and "for data/drops/puzzles/recipes/mine.toml:" in said
    written = write(found, tmp_path / "data")
    assert written == tmp_path / "data/drops/puzzles/recipes/mine.toml"
    assert f'"{read_recipe_file(written).sources[0]}"' in recipe


def test_steps_of_2048_get_the_file_that_makes_them_a_drop(tmp_path):
    folder = save(tmp_path / "pool", self_play([play(1, 10)], [3]))
    text = (folder / "steps.toml").read_text()
    (folder / "steps.toml").unlink()
    (taker,) = asked(listed(folder, REFUSE_LINKS), REFUSE_LINKS)[0]
    assert (taker.inbox, taker.recipe, taker.beside) == ("macroxue", text, "steps.toml")
    found = look(folder)
    assert f"recipe, a guess, for {folder}/steps.toml:" in list(lines(found))
    assert write(found).read_text() == text
    (taker,) = asked(listed(folder, REFUSE_LINKS), REFUSE_LINKS)[0]
    assert (taker.inbox, taker.recipe) == ("macroxue", "")
    with pytest.raises(GristmillError, match="macroxue reads the files as they are"):
        write(look(folder))


def test_tasks_that_puzzles_refuses_are_no_rows(tmp_path):
    """As those of 1D-ARC, of which some are wider than ARC's grids."""
    pair = {"input": [[0] * 31], "output": [[1] * 31]}
    (tmp_path / "own/fill").mkdir(parents=True)
    for number in range(3):
        task = {"train": [pair], "test": [pair], "uuid": str(number)}
        (tmp_path / f"own/fill/{number}.json").write_text(json.dumps(task))
    found = look(tmp_path / "own")
    (hint,) = found.hints
    assert hint.startswith("tasks of ARC, which `puzzles` does not read: ")
    assert "a row is a list of 1 to 30 colours, and this one has 31: leave the task out" in hint
    assert (found.takers, found.reading.columns.rows, found.proposal.text) == ([], 0, "")


def test_a_bank_of_sudokus_with_a_bad_row_is_no_corpus_of_texts(tmp_path):
    rows = [{"puzzle": CLUES, "solution": RIGHT}] * 30 + [{"puzzle": CLUES[1:], "solution": RIGHT}]
    jsonl(tmp_path / "a.jsonl", rows)
    found = look(tmp_path)
    assert "puzzles of 81 cells in puzzle" in "\n".join(found.hints)
    assert found.proposal.text == ""
    jsonl(tmp_path / "a.jsonl", rows[-12:])
    assert look(tmp_path).proposal.text

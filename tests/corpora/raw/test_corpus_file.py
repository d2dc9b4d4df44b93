"""Files of corpora: what is refused, and the recipes of `docs/corpora.md`.

Columns that a `corpus.toml` names and no row has.
"""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw import drops
from gristmill.corpora.raw.chat.recipe import read_chat_file
from gristmill.corpora.raw.corpus_file import checked, read_corpus_file
from gristmill.corpora.raw.drops import corpus_of
from gristmill.reasoning.builders.normalize import NormalizeSummary, normalize
from gristmill.reasoning.config import CorpusConfig
from gristmill.reasoning.laws.texts import normalized_laws
from tests.paths import CHECKOUT

PAGE = (CHECKOUT / "docs/corpora.md").read_text()
RECIPE = re.compile(
    r"`(\w+)/corpus\.toml`[^\n]*\n\n```toml\n(.*?)```.*?```json\n(.*?)```.*?```json\n(.*?)```", re.S
)
HEAD = 'schema = 1\nname = "mine"\n'
PLAIN = HEAD + 'question = "q"\nanswer = "a"\n'


def test_the_recipes_of_the_page_make_the_records_that_it_shows(tmp_path):
    recipes = RECIPE.findall(PAGE)
    assert len(recipes) == 7
    for name, recipe, row, record in recipes:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "corpus.toml").write_text(recipe)
        (folder / "train.jsonl").write_text(row)
        out = tmp_path / f"{name}_out"
        table = drops.corpus_of(folder).table
        made = normalize(folder, out, CorpusConfig(corpus=table), split="train")
        assert (made.records, made.rejected) == (1, 0)
        line = (out / name / "train.jsonl").read_text()
        assert line == json.dumps(json.loads(record), ensure_ascii=False) + "\n", name
        assert list(normalized_laws(out, f"{name}__train", table=table)) == []


def test_the_page_shows_the_file_of_gsm8k_and_names_the_others():
    folder = CHECKOUT / "gristmill/corpora"
    assert (folder / "gsm8k.toml").read_text() in PAGE
    for name in CORPORA:
        assert name == "gsm8k" or f"`{name}.toml`" in PAGE


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('name = "mine"\nquestion = "q"\n', "schema = 1 is missing"),
        ('schema = 1\nname = "other"\nquestion = "q"', 'must be "mine", as the folder is named'),
        ('schema = 1\nname = 3\nquestion = "q"', "name = 3: must be a text"),
        ('schema = 1\nquestion = "q"\nquotes = 1', "quotes = 1: must be true or false, as quotes"),
        (HEAD + 'question = "q"\npart_bytes = 0', "part_bytes = 0: must be a whole number from 1"),
        (HEAD, 'question is missing: write question = "name of its column"'),
        (HEAD + 'qustion = "q"', 'unknown key "qustion".*question'),
        (PLAIN + "when_made = 2026-01-01", "no text, number, truth value, list or table"),
        (PLAIN + 'keep = [{ column = "n", at_least = nan }]', "no text, number, truth value"),
        (PLAIN + "extras = [1]", r"extras = \[1\]: must be a list of texts"),
        (PLAIN + 'extras = ["answer"]', 'extras: "answer" has a meaning of its own'),
        (PLAIN + 'extras = ["source"]\nsource = "s"', r"put question, .* below \[\[form\]\]"),
        (PLAIN + 'extras = ["x", "x"]', "each once"),
        (PLAIN + 'evidence = ["x"]', 'evidence: "x" is none of `extras`'),
        (PLAIN + 'files = { test_sft = "*" }', "files.test_sft: must be lower-case letters"),
        (PLAIN + "files = { train = 1 }", "files.train: must be a glob"),
        (PLAIN + 'files = { train = "*" }\nsplit = { test = 0.1 }', "leave `split` or `files` out"),
        (PLAIN + "split = { test = 0.7, validation = 0.7 }", "more than 1 together"),
        (PLAIN + "split = { test = 1.2 }", "split.test = 1.2: must be a number from 0 to 1"),
        (PLAIN + "sample = { seed = 3 }", "sample: has neither share nor cap"),
        (PLAIN + "sample = { cap = 0 }", "sample.cap = 0: must be a whole number from 1"),
        (PLAIN + "sample = { cap = true }", "sample.cap = true: must be a whole number from 1"),
        (PLAIN + 'steps = { "H:" = "hypothesis" }', "must be one capitalised word but Step"),
        (PLAIN + 'steps = { "H:" = "Step" }', "must be one capitalised word but Step"),
        (PLAIN + "licence = { trian = true }", 'licence: unknown key "trian".*train'),
        (PLAIN + 'licence = { train = "no" }', 'licence.train = "no": must be true or false'),
        (PLAIN + 'texts = "{t}"', "leave question, answer and cot out"),
        (PLAIN + f'leave = ["{"*a" * 300}"]', "leave: a glob has at most 500 characters"),
        (HEAD + 'texts = "text"', r'the template names no column: write "\{column\}"'),
        (PLAIN + 'subject = "type"', r'name a key of your records in extras = \["subject"\]'),
        (PLAIN + 'extras = ["subject"]', 'has no value: write subject = "subject", its column'),
        (PLAIN + 'licence = "MIT"', r'must be a table, as licence = \{ id = "MIT"'),
        (PLAIN + 'cot = { after = "x" }', r'cot: `after` needs a column: write \{ column = "name"'),
        (HEAD + 'question = { choice = "c" }', 'question: `of` is missing: write of = "column"'),
        (PLAIN + 'python = "os"', "python = 'os': no such transform; known: trip"),
        (HEAD + 'question = { template = "{q" }', "question: "),
        (HEAD + 'question = { colum = "q" }', "question: has none of the keys"),
        (HEAD + "question = 3", "question: must be the name of a column"),
        (PLAIN + 'keep = ["x"]', "keep: a rule is a table"),
        (PLAIN + "form = []", "must be a list of tables"),
        (HEAD + '[[form]]\ntexts = "{t}"', 'form 1: unknown key "texts"'),
        (HEAD + '[[form]]\nquestion = "q"\nparts = 1', "form 1: parts: must be a table"),
        (HEAD + 'question = "q"\ngroup = { by = "k" }\ncot = "s"', "group: lacks order"),
        (HEAD + 'question = "' + "a." * 20 + 'a"', "more than 16 steps"),
        (PLAIN + "x = " + "[" * 40 + "]" * 40, "nested|levels"),
        (PLAIN + "#" * (256 << 10), "bytes"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_and_the_rule(tmp_path, text, rule):
    path = tmp_path / "corpus.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=rule) as raised:
        read_corpus_file(path, "mine")
    assert str(raised.value).startswith(f"{path}:")


@pytest.mark.parametrize("name", ["origins", "My_Math", "a__b", "_a", "a" * 41])
def test_a_reserved_name_or_one_with_other_letters_is_refused(tmp_path, name):
    path = tmp_path / "corpus.toml"
    path.write_text(f'schema = 1\nname = "{name}"\nquestion = "q"\n')
    with pytest.raises(BadInput, match=r"a folder beside|lower-case letters"):
        read_corpus_file(path, name)


def test_a_file_without_a_name_has_that_of_its_drop(tmp_path):
    path = tmp_path / "corpus.toml"
    path.write_text('schema = 1\nquestion = "q"\n')
    without = read_corpus_file(path, "mine")
    path.write_text(HEAD + 'question = "q"\n')
    assert without == read_corpus_file(path, "mine") and without.name == "mine"
    assert checked({"schema": 1, "question": "q"}, "mine") == without
    chat = 'schema = 1\nkind = "chat"\nmessages = "m"\n'
    path.write_text(chat)
    talks = read_chat_file(path, "talks")
    path.write_text(chat + 'name = "talks"\n')
    assert talks == read_chat_file(path, "talks") and talks.corpus.name == "talks"


def test_an_extra_may_have_the_name_of_a_key_and_columns_that_are_not_read_are_meant(tmp_path):
    path = tmp_path / "corpus.toml"
    path.write_text(HEAD + 'extras = ["source"]\n[[form]]\nquestion = "q"\nsource = "s"\n')
    corpus = read_corpus_file(path, "mine")
    assert corpus.extra_columns == ("source",) and corpus.forms[0].values["source"] == "s"
    (tmp_path / "mine").mkdir()
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "mine" / "train.parquet")
    with pytest.raises(BadInput, match='did you mean "generated_solution"'):
        built(tmp_path, PLAIN_ABSENT + 'cot = { think = "generated_soluton" }')


def test_a_data_file_is_in_one_split_or_left_out(tmp_path):
    folder = tmp_path / "mine"
    for name in ("SFT/math/a.jsonl", "SFT/code/a.jsonl", "Dev-1.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}\n" + name)
    files = 'files = { train = "SFT/math/*", dev = "dev-?.jsonl" }\n'
    (folder / "corpus.toml").write_text(PLAIN + files)
    with pytest.raises(BadInput, match=r"code/a\.jsonl: is in no split of `files` in corpus\.toml"):
        drops.account(folder)
    (folder / "corpus.toml").write_text(PLAIN + files + 'leave = ["SFT/code/*"]\n')
    account = drops.account(folder)
    assert account.taken == {"train": ["SFT/math/a.jsonl"], "dev": ["Dev-1.jsonl"]}
    assert list(account.left_out) == ["SFT/code/a.jsonl"]
    (folder / "corpus.toml").write_text(PLAIN + 'files = { train = "*", dev = "dev*" }\n')
    with pytest.raises(BadInput, match="is in the splits train and dev"):
        drops.account(folder)


ROW = {
    "problem": "q",
    "generated_solution": "<think>t</think>a",
    "answer": "a",
    "problem_source": "x",
}
PLAIN_ABSENT = HEAD + 'question = "problem"\nanswer = "answer"\n'


def built(folder: Path, text: str, rows: list[dict[str, Any]] | None = None) -> NormalizeSummary:
    """The summary of the split train of a drop with this `corpus.toml`."""
    drop = folder / "mine"
    drop.mkdir(parents=True, exist_ok=True)
    (drop / "corpus.toml").write_text(text)
    if rows is not None:
        (drop / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = CorpusConfig(corpus=corpus_of(drop).table)
    return normalize(drop, folder / "out", config, split="train")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            PLAIN_ABSENT + 'cot = { think = "generated_soluton" }',
            'cot: no row has a column "generated_soluton": did you mean "generated_solution"?',
        ),
        (
            PLAIN_ABSENT.replace(
                "question", 'extras = ["origin"]\norigin = "problem_sorce"\nquestion'
            ),
            'origin: no row has a column "problem_sorce": did you mean "problem_source"?',
        ),
        (PLAIN_ABSENT + 'keep = [{ column = "anwser", not_in = ["b"] }]', 'keep: .*mean "answer"'),
        (PLAIN_ABSENT + 'keep = [{ column = "anwser", in = ["a"] }]', 'keep: .*mean "answer"'),
        (PLAIN_ABSENT + 'dedup = ["problm"]', 'dedup: .*mean "problem"'),
        (PLAIN_ABSENT + 'split = { by = "problm", test = 0.1 }', 'split: .*mean "problem"'),
        (PLAIN_ABSENT + 'ignore = ["thoghts"]', 'ignore: no row has a column "thoghts"'),
        (PLAIN_ABSENT + 'id = "problm.x"', 'id: .*mean "problem"'),
        (
            PLAIN_ABSENT + 'cot = { first = ["x1", "x2"] }',
            'cot: .* "x1": name another one .*"answer", "g',
        ),
        (HEAD + 'texts = "{problem}{anwser}"', 'texts: .*mean "answer"'),
        (
            HEAD + '[[form]]\nname = "two"\nquestion = "problem"\nanswer = "answer"\n'
            'cot = { template = "{thought} {answer}" }\nparts = { thought = "problm" }',
            'cot: no row has a column "problm"',
        ),
    ],
)
def test_a_column_that_no_row_has_is_refused(tmp_path, text, rule):
    with pytest.raises(BadInput, match=rule.replace("?", r"\?")) as error:
        built(tmp_path, text, [ROW] * 3)
    assert str(error.value).startswith(f"{tmp_path / 'mine' / 'corpus.toml'}: ")


def test_a_column_that_some_row_has_or_that_may_be_absent_is_taken(tmp_path):
    text = PLAIN_ABSENT + (
        'id = "id"\nkeep = [{ column = "error", present = false }]\n'
        'cot = { first = ["answer", "more"] }\n'
    )
    assert built(tmp_path, text, [ROW, {**ROW, "id": "1"}]).records == 2
    forms = (
        HEAD + '[[form]]\nname = "one"\nwhen = ["other"]\nquestion = "other"\nanswer = "gone"\n'
        '[[form]]\nname = "two"\nunless = ["gone"]\nquestion = "problem"\nanswer = "answer"\n'
    )
    assert built(tmp_path / "forms", forms, [ROW]).records == 1

"""Each family is asked whether it reads files as they are."""

import json
import os
import resource

import pytest

from gristmill.contract import GristmillError
from gristmill.families import catalogs, inboxes
from gristmill.keys import refusal
from gristmill.look.families import asked, fits
from gristmill.look.finding import look, write
from gristmill.look.reading import listed
from gristmill.look.report import lines
from gristmill.puzzles.raw.drops import proposal
from gristmill.puzzles.raw.recipes import read_recipe_file
from gristmill.untrusted.files import REFUSE_LINKS
from tests.json_lines import jsonl
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
    "Sudoku": (
        "sudoku.csv",
        f"clues,filled\n{BOARD},{BOARD}\n",
        "or set question_column to its name",
    ),
    "Sudokus in lines": (
        "mine.jsonl",
        json.dumps({"done": RIGHT, "puzzle": CLUES, "id": 1}),
        """(echo question,answer; jq -r '[."puzzle", ."done"] | @csv' mine.jsonl) > sudoku.csv""",
    ),
    "tasks in an object": ("a.json", json.dumps({"t": TASK, "u": TASK}), "tasks of ARC in one"),
    "tasks in a list": ("a.json", json.dumps([TASK]), "tasks of ARC in one file"),
    "tasks in lines": ("a.jsonl", f"{json.dumps(TASK)}\n" * 2, "tasks of ARC in one file"),
    "a task in no folder": ("a.json", json.dumps(TASK), "as to training/TASK.json"),
    "grids": (
        "a.jsonl",
        json.dumps({"id": 1, "input": [[1, 2]], "output": [[2, 1]]}),
        "grids as lists",
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
    assert any("on disk while it builds" in each for each in found.takers[0].columns)
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
    assert "Sudokus of 81 cells" in "\n".join(found.hints) and found.proposal.text == ""
    jsonl(tmp_path / "a.jsonl", rows[-12:])
    assert look(tmp_path).proposal.text

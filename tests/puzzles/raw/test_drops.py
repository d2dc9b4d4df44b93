"""Which files of a repository of puzzles become a drop."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.inbox.hub import HubError
from gristmill.puzzles.builds import drop_account
from gristmill.puzzles.config import BUILT_IN, Recipe
from gristmill.puzzles.raw import drops as hub
from gristmill.puzzles.raw.arc_tasks import read_tasks
from gristmill.puzzles.raw.drops import account, proposal, source_files, tasks_in
from gristmill.puzzles.raw.fitness import Fitness, fitness, is_bank, puzzle_hints
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.hub_server import COMMIT, server
from tests.paths import REAL_DATA
from tests.puzzles import arc_tasks
from tests.puzzles.raw.test_arc_tasks import TASKS, plain
from tests.puzzles.raw.test_arc_tasks import write as write_subset
from tests.refusal import refusal

__all__ = ["server"]  # a fixture

MAZES = "sapientinc/maze-30x30-hard-1k"


def test_the_two_tables_are_reached_and_a_repository_without_one_is_refused(server):
    tables = {"train.csv": b"x" * 3000, "test.csv": b"x", "data/train.csv": b"x", "a.md": b"x"}
    server.repositories[MAZES] = tables
    place = hub.reached(MAZES, endpoint=server.address)
    assert (place.source.revision, place.bytes) == (COMMIT, 3001)
    assert sorted(place.files) == ["test.csv", "train.csv"]
    del tables["test.csv"]
    with pytest.raises(HubError, match=r"has no file test\.csv"):
        hub.reached(MAZES, endpoint=server.address)


def test_every_drop_that_can_be_fetched_has_a_recipe():
    sources = {source for recipe in BUILT_IN.values() for source in recipe.sources}
    assert set(hub.SOURCES) <= sources


PAIRS = [[*task["train"], *task["test"]] for task in TASKS.values()]
LISTS = [[[*pair.values()] for pair in pairs] for pairs in PAIRS]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FORMS: dict[str, str] = {
    "it's one.json": json.dumps(TASKS),
    "by subset.json": json.dumps({"train": TASKS, "eval": TASKS}, indent=1),
    "deeper.json": json.dumps({"data": {"a-b": TASKS}}),
    "list.json": json.dumps([*TASKS.values()]),
    "rows.json": json.dumps({"rows": [{"id": 1, "task": task} for task in TASKS.values()]}),
    "lines.jsonl": lines(*TASKS.values()),
    "nested.ndjson": lines(*({"task": task} for task in TASKS.values())),
    "pairs.jsonl": lines(*({"examples": pairs} for pairs in PAIRS)),
    "BARC.jsonl": lines(*({"source": ["[[1"], "examples": pairs} for pairs in LISTS)),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_cure_makes_the_tasks(name, tmp_path):
    drop = tmp_path / "own"
    drop.mkdir()
    (drop / name).write_text(FORMS[name])
    with pytest.raises(BadInput, match="tasks of ARC in one file") as refused:
        account(drop)
    if shutil.which("jq") is None:
        pytest.skip("there is no jq here")
    for command in re.findall("`(jq .*?)`", str(refused.value)):
        subprocess.run(["sh", "-c", command], cwd=drop, check=True)
    (drop / name).unlink()
    expected = [
        [[pair["input"], pair["output"]] for key in ("train", "test") for pair in task[key]]
        for task in TASKS.values()
    ]
    assert [plain(task) for task in read_tasks(drop)] == expected


@pytest.mark.parametrize(
    "value",
    [
        {"a": [[[1, 2], [3, 4]]]},  # solutions of Kaggle
        [arc_tasks.pair(1)],  # RE-ARC
        {"input": [[1]], "output": [[2]]},  # a row of grids
        {"rows": [[1, 2], [3]], "text": "[[1]]"},
        {"input_ids": [[1, 5]], "image": [[[1, 2, 3]]]},
    ],
)
def test_other_grids_are_no_tasks(value, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(value))
    assert tasks_in(tmp_path, {"a.jsonl": 1}, REFUSE_LINKS) is None


PAIR = {"input": [[0, 1]], "output": [[3]]}
TASK = {"train": [PAIR], "test": [PAIR]}
TABLE = "source,question,answer,rating\n"
BOARD = "." * 81


def laid(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    return folder


def names_of(kind: str, folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in source_files(kind, folder)]


def test_tasks_are_in_folders_one_level_below_a_source(tmp_path):
    folder = laid(
        tmp_path / "arc",
        "training/b.json",
        "training/a.json",
        "evaluation/c.json",
        "top.json",
        "training/deep/d.json",
        "training/.e.json",
        "training/f.txt",
        "training/g.JSON",
    )
    assert names_of("arc", folder) == [
        *("evaluation/c.json", "training/a.json", "training/b.json", "training/g.JSON")
    ]


@pytest.mark.parametrize("kind", ["sudoku", "maze"])
def test_puzzles_are_in_tables_in_the_source_itself(kind, tmp_path):
    folder = laid(tmp_path / "bank", "train.csv", "easy.txt", "LICENSE", "more/test.csv", ".s.csv")
    assert names_of(kind, folder) == ["easy.txt", "train.csv"]


def test_a_link_with_the_name_of_a_task_is_refused_or_followed(tmp_path):
    folder = laid(tmp_path / "arc", "training/a.json")
    other = laid(tmp_path / "other", "b.json") / "b.json"
    (folder / "training" / "b.json").symlink_to(other)
    with pytest.raises(BadInput, match=r"training/b\.json: is a link"):
        source_files("arc", folder)
    links = LinkRule(True, (str(tmp_path / "other"),))
    assert len(source_files("arc", folder, links)) == 2


def test_the_account_of_tasks_names_every_file(tmp_path):
    drop = tmp_path / "mine"
    arc_tasks.write(drop, {"training/a": TASK, "evaluation/b": TASK})
    (drop / "evaluation" / "b.json").rename(drop / "evaluation" / "b.JSON")
    laid(drop, "LICENSE", "training.txt", "training/notes.md", "more/x/y.md", ".git/x/y.json")
    laid(drop, "SHA256SUMS", ".done", "gristmill.toml", "training/.c.json")
    found = account(drop)
    assert found.taken == {"": ["evaluation/b.JSON", "training/a.json"]}
    assert found.left_out == {
        "LICENSE": "no file of puzzles",
        "more/": "no recipe reads this folder",
        "training.txt": "other files are the source",
        "training/notes.md": "no file of puzzles",
    }
    assert found.notes == []
    assert refusal(account, drop) is None


def test_a_recipe_says_which_folders_of_a_drop_are_read(tmp_path):
    drop = tmp_path / "concept_arc"
    arc_tasks.write(drop, {"corpus/Center/a": TASK, "MinimalTasks/b": TASK})
    found = account(drop)  # the built-in recipe reads concept_arc/corpus
    assert found.taken == {"": ["corpus/Center/a.json"]}
    assert found.left_out == {"MinimalTasks/": "no recipe reads this folder"}
    whole = Recipe("whole", "arc", ("concept_arc",))
    with pytest.raises(BadInput, match=r"Center/a\.json: is not in a sub-folder of the source"):
        account(drop, recipes=[whole])
    both = account(drop, recipes=[whole, Recipe("part", "arc", ("concept_arc/corpus",))])
    assert both.taken == found.taken
    (note,) = both.notes
    assert note.startswith("not for the recipe whole: ") and "Center/a.json" in note
    other = account(drop, recipes=[Recipe("part", "arc", ("elsewhere",))])
    assert other.taken == found.taken, "a drop that no recipe names is taken for what it holds"
    arc_tasks.write(tmp_path / "arc_agi_2", {"data/training/a": TASK})
    with pytest.raises(BadInput, match="is not in a sub-folder of the source"):
        account(tmp_path / "arc_agi_2")


def test_the_account_of_tables_names_what_is_read_in_their_place(tmp_path):
    drop = laid(tmp_path / "mine", "bank.txt", "README.txt", "valid.csv", "more/train.csv")
    for name in ("TRAIN.csv", "test.CSV"):
        (drop / name).write_text(TABLE + "x\n")
    (drop / "more" / "test.csv").write_text(TABLE)
    (drop / "more" / "train.csv").write_text(TABLE)
    found = account(drop)
    assert found.taken == {"": ["TRAIN.csv", "more/test.csv", "more/train.csv", "test.CSV"]}
    assert found.left_out == {
        "README.txt": "no file of puzzles",
        "bank.txt": "other files are the source",
        "valid.csv": "other files are the source",
    }
    maze = account(drop, recipes=[Recipe("m", "maze", ("mine",))])
    assert maze.taken == {"": ["TRAIN.csv", "test.CSV"]}
    assert maze.left_out["more/"] == "no recipe reads this folder"


def test_the_account_of_banks_takes_capitals_and_a_byte_order_mark(tmp_path):
    drop = laid(tmp_path / "mine", "LICENSE.TXT")
    (drop / "easy.TXT").write_bytes(b"\xef\xbb\xbf" + BOARD.encode() + b"\r\n")
    assert account(drop).taken == {"": ["easy.TXT"]}
    assert account(drop).left_out == {"LICENSE.TXT": "no file of puzzles"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("README.md", "", "mine: holds no file of puzzles"),
        ("train.csv.gz", "", "into it; unpack train.csv.gz"),
        ("arc_training_challenges.json", "{}", "arc_training_solutions.json: is missing beside"),
        ("arc_training_solutions.json", "{}", "arc_training_challenges.json: is missing beside"),
        ("a/x.json", '{"0": {"train": [], "test": []}}', "x.json: holds several tasks"),
        ("a/x.json", '{"0": [[[1]]]}', "x.json: holds several tasks: Kaggle's form of ARC is"),
        ("metadata.json", "{}", "metadata.json: is of RE-ARC's form"),
        ("tasks/x.json", '[{"input": [[1]], "output": [[2]]}]', "x.json: is of RE-ARC's form"),
        ("identifiers.json", "[]", "identifiers.json: is of a dataset of the HRM project"),
        ("train/dataset.json", '{"pad_id": 0}', "is of a dataset of the HRM project"),
        ("s.csv", "id,puzzle,clues\n", "or name one column of the answers (answer, answers,"),
        ("s.csv", "puzzle,quizzes,solution\n", "or set question_column to its name"),
        ("s.csv", "a,b\n", "the first line is 'a,b', must be source,question,answer,rating"),
        ("train.csv", TABLE, "has train.csv, but no test.csv: add it"),
        ("a/x.json", "", "x.json: is empty: get the file again, or remove it"),
        ("a/x.json", "\ufeff \n", "x.json: is empty: get the file again, or remove it"),
        ("bank.txt", "// a comment\n", "bank.txt:1: has words of 2, 1, 7 characters"),
        ("bank.txt", "\n\n", "bank.txt: holds no puzzle: get the file again, or remove it"),
        ("bank.txt", f"{BOARD}\r{BOARD}\r", "bank.txt:1: has line ends of one carriage return"),
    ],
)
def test_what_no_recipe_can_read_is_refused_by_the_name_of_its_form(tmp_path, name, text, said):
    drop = laid(tmp_path / "mine", name)
    (drop / name).write_text(json.dumps(TASK) if text == "TASK" else text, newline="")
    with pytest.raises(BadInput) as raised:
        account(drop)
    assert said in str(raised.value)
    assert refusal(account, drop) == str(raised.value)


def test_an_empty_task_beside_others_refuses_the_drop(tmp_path):
    drop = tmp_path / "mine"
    arc_tasks.write(drop, {"training/a": TASK, "training/b": TASK})
    (drop / "training" / "b.json").write_bytes(b"")
    with pytest.raises(BadInput, match=r"training/b\.json: is empty"):
        account(drop)


def test_a_link_anywhere_in_a_drop_refuses_it(tmp_path):
    drop = tmp_path / "mine"
    arc_tasks.write(drop, {"training/a": TASK})
    (drop / "LICENSE").symlink_to(drop / "training" / "a.json")
    with pytest.raises(BadInput, match="LICENSE: is a link"):
        account(drop)


@pytest.mark.skipif(not REAL_DATA.exists(), reason="needs the real drops")
def test_the_real_drops_are_taken_or_named():
    taken = {
        name: len(account(REAL_DATA / "puzzles" / name).taken[""])
        for name in ("arc", "concept_arc", "sudoku_bank")
    }
    assert taken == {"arc": 800, "concept_arc": 160, "sudoku_bank": 6}
    assert "is built already" in str(refusal(account, REAL_DATA / "puzzles" / "maze_hrm_built"))


def test_keys_of_a_task_that_nothing_reads_are_named(tmp_path):
    drop = tmp_path / "own"
    for name, more in (("training/a", {"uuid": "7"}), ("evaluation/b", {"level": 3})):
        (drop / name).parent.mkdir(parents=True)
        (drop / f"{name}.json").write_text(json.dumps({**TASK, **more}))
    found = account(drop)
    assert found.taken == {"": ["evaluation/b.json", "training/a.json"]}
    assert found.notes == ["keys of tasks that nothing reads: level, uuid"]


@pytest.mark.parametrize(
    ("names", "held"),
    [
        (("train/a.csv", "test/a.csv"), "test/a.csv"),
        (("sudoku_train.csv", "Sudoku-Valid.csv"), "Sudoku-Valid.csv"),
        (("latest.csv", "contest.csv"), ""),
        (("train.csv", "test.csv"), ""),
    ],
)
def test_files_of_tests_beside_others_are_refused_but_a_recipe_may_divide_them(
    names, held, tmp_path
):
    for name in names:
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(f"question,answer\n{'.' * 81},{'1' * 81}\n")
    with pytest.raises(BadInput, match="are splits: rename") if held else nullcontext() as refused:
        account(tmp_path / "own")
    assert not held or refused.value.file == str(tmp_path / "own" / held)
    sources = {"/".join(["own", *name.split("/")[:-1]]): None for name in names}
    notes = account(tmp_path / "own", recipes=[Recipe("mine", "sudoku", (*sources,))]).notes
    assert any(f"test_share divides all files, {held} too" in note for note in notes) == bool(held)


def test_a_source_that_is_a_file_and_a_folder_without_the_subsets_are_refused(tmp_path):
    path = tmp_path / "own/training/a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(TASK))
    recipe = Recipe("mine", "arc", ("own/training/a.json",))
    with pytest.raises(BadInput, match="is not a folder: name the folder that the file is in"):
        account(tmp_path / "own", recipes=[recipe])
    recipe = Recipe("mine", "arc", ("own",), {"subsets": ("trainig",)})
    with pytest.raises(BadInput, match="holds no ARC task in `trainig`, which subsets names: they"):
        account(tmp_path / "own", recipes=[recipe])


def test_tables_beside_json_that_is_no_task_are_guessed(tmp_path):
    drop = tmp_path / "own"
    (drop / "meta").mkdir(parents=True)
    for name in ("dataset_infos.json", "meta/info.json"):
        (drop / name).write_text("{}")
    with pytest.raises(BadInput, match=r"dataset_infos\.json: .* or remove it if it is no task"):
        account(drop)
    for name in ("train.csv", "test.csv"):
        (drop / name).write_text(f"question,answer\n{'.' * 81},{'1' * 81}\n")
    assert account(drop).taken == {"": ["test.csv", "train.csv"]}
    assert proposal(drop) == 'kind = "sudoku"\nsources = ["own"]\n'


def test_a_guess_names_sources_that_are_read_and_folders_that_test(tmp_path):
    drop = tmp_path / "own"
    for name in ("corpus/Copy/a", "corpus/Count/b", "few/c"):
        (drop / name).parent.mkdir(parents=True)
        (drop / f"{name}.json").write_text(json.dumps(TASK))
    assert proposal(drop) == (
        'kind = "arc"\nsources = ["own/corpus"]\n[settings]\nleaks = "drop"\n'
        'evaluation = ["Copy", "Count"]\nnum_aug = 20\ndtype = "uint8"\n'
    )
    (drop / "corpus/Copy").rename(drop / "corpus/evaluation")
    made = 'kind = "arc"\nsources = ["own/corpus"]\n[settings]\nnum_aug = 20\ndtype = "uint8"\n'
    assert proposal(drop) == made


def test_folders_that_do_not_fit_are_left_out_and_the_setting_is_named(tmp_path):
    wide = {"input": [[0] * 31], "output": [[1] * 31]}
    tasks = {
        "a/x": TASK,
        "b/x": TASK,
        "b/y": {"train": [wide], "test": [wide]},
        "evaluation/x": TASK,
    }
    drop, cure = arc_tasks.write(tmp_path / "own", tasks), 'subsets = ["a", "evaluation"]'
    found = account(drop)
    assert found.taken == {"": ["a/x.json", "evaluation/x.json"]}
    assert found.left_out == {"b/": "no recipe reads this folder"}
    (note,) = found.notes
    assert "do not fit: b (y.json: train pair 0, input, row 0: " in note and cure in note
    assert f"[settings]\n{cure}\nnum_aug" in proposal(drop)
    with pytest.raises(BadInput, match=re.escape(cure)):
        account(drop, recipes=[Recipe("r", "arc", ("own",))])
    chosen = Recipe("r", "arc", ("own",), {"subsets": ["a", "evaluation"]})
    assert account(drop, recipes=[chosen]).taken == found.taken
    (drop / "a/x.json").rename(drop / "b/z.json")
    (drop / "evaluation/x.json").unlink()
    with pytest.raises(BadInput, match="this one has 31"):
        account(drop)


@pytest.mark.parametrize(
    ("subsets", "settings"),
    [
        ("training evaluation", ""),
        ("training training2 evaluation2", 'evaluation = ["evaluation2"]\n'),
        ("training concept", 'leaks = "drop"\nevaluation = ["concept", "training"]\n'),
        (
            "training evaluation training2 evaluation2 concept training10 evaluation10",
            'subsets = ["evaluation10", "training10"]\nevaluation = ["evaluation10"]\n',
        ),
    ],
)
def test_of_several_versions_of_a_collection_the_last_one_is_proposed(tmp_path, subsets, settings):
    for name in subsets.split():
        write_subset(tmp_path / "own", name, {"t": TASK})
    assert (
        proposal(tmp_path / "own").partition("[settings]\n")[2]
        == f'{settings}num_aug = 20\ndtype = "uint8"\n'
    )


SOLVED = "".join(str((3 * (y % 3) + y // 3 + x) % 9 + 1) for y in range(9) for x in range(9))
ROWS = [f"{'0' * i + SOLVED[i:]},{SOLVED}" for i in range(1, 41)]
MAZE = "#SoG## ##"
GRID = '{"input": [[1, 2], [3, 4]], "output": [[1]]}'


def put(folder: Path, rows: Sequence[str], name: str = "own.csv", head: str = "puzzle,solution"):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*([head] if name.endswith(".csv") else []), *rows]
    (folder / name).write_text("".join(line + "\n" for line in lines))
    return folder


BANK = [row.partition(",")[0] for row in ROWS]


@pytest.mark.parametrize(
    ("name", "rows", "kind", "wrong"),
    [
        ("own.csv", ROWS, "sudoku", ""),
        ("own.csv", [ROWS[0][1:], *ROWS], "sudoku", "own.csv:2: the question has 80 characters"),
        ("own.csv", [*ROWS, ROWS[0][:-1] + "1"], "sudoku", "own.csv:42: the answer is no solution"),
        ("own.csv", [*ROWS, f"x{ROWS[0][1:]}"], "sudoku", "own.csv:42: has a cell that is no"),
        ("own.csv", [*ROWS, f"2{ROWS[0][1:]}"], "sudoku", "own.csv:42: the answer is no solution"),
        ("own.csv", [*ROWS, f"{ROWS[0]},3"], "sudoku", "own.csv:42: has 3 columns, must have 2"),
        ("bank.txt", [*BANK, "2" * 80], "sudoku", "bank.txt:41: has words of 80 characters"),
        ("bank.txt", ["# of mine", *BANK], "sudoku", ""),
        ("own.csv", [f"{MAZE},{MAZE}"] * 30, "maze", ""),
        ("own.csv", [*[f"{MAZE},{MAZE}"] * 30, f"{MAZE},{'?' * 9}"], "maze", "own.csv:32: a cell"),
        ("own.jsonl", [GRID] * 30, "grid", ""),
        ("own.jsonl", [*[GRID] * 30, GRID.replace("3, 4", "3")], "grid", "jsonl:31: input, row"),
        ("own.jsonl", [*[GRID] * 30, GRID[:-1]], "grid", "own.jsonl:31: "),
    ],
)  # fmt: skip
def test_a_bank_with_a_bad_row_is_a_bank_and_says_which(tmp_path, name, rows, kind, wrong):
    drop = put(tmp_path / "own", rows, name)
    if kind == "maze":
        put(drop, rows, "train.csv"), put(drop, rows, "test.csv"), (drop / name).unlink()
        wrong = wrong.replace("own.csv", "test.csv")
    found = fitness(drop)
    assert found is not None and found.kind == kind and found.wins
    assert (found.rows - found.fit > 0) == bool(wrong)
    assert wrong in found.line
    named = [note for note in account(drop, recipes=()).notes if note == found.line]
    assert named == ([found.line] if wrong else [])
    assert proposal(drop).startswith(f'kind = "{kind}"\n')


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("own.csv", ["a,b"] * 40),
        ("notes.txt", ["words of a text"] * 40),
        ("own.jsonl", ['{"question": "2 + 2", "answer": "4"}'] * 40),
        ("own.parquet", ROWS),
        ("own.csv", []),
    ],
)
def test_other_rows_are_no_puzzles(tmp_path, name, rows):
    assert fitness(put(tmp_path, rows, name)) is None
    assert fitness(tmp_path / name) is None


def test_below_95_percent_the_rows_are_not_of_the_kind(tmp_path):
    put(tmp_path, [*ROWS[:19], "1,2"])
    assert fitness(tmp_path).wins
    put(tmp_path, [*ROWS[:18], "1,2"])
    assert not fitness(tmp_path).wins
    assert not Fitness("sudoku").wins
    bank = put(tmp_path / "bank", [*BANK[:18], "1"], "bank.txt")
    with pytest.raises(BadInput, match=r"bank\.txt:19: has words of 1 characters"):
        account(bank, recipes=())


@pytest.mark.parametrize(
    ("head", "sign", "settings"),
    [
        ("quizzes,solutions", ".", ""),
        ("clues,solution", "0", 'question_column = "clues"\n'),
        ("clues,filled", "_", 'question_column = "clues"\nanswer_column = "filled"\nblank = "_"\n'),
        ("puzzle,solution", "*", 'blank = "*"\n'),
    ],
)
def test_a_recipe_names_the_columns_and_the_blank_of_a_table(tmp_path, head, sign, settings):
    drop = put(
        tmp_path / "own", [row.replace("0", sign) for row in [ROWS[0][1:], *ROWS]], head=head
    )
    made = 'kind = "sudoku"\nsources = ["own"]\n'
    assert proposal(drop) == made + (f"[settings]\n{settings}" if settings else "")
    assert account(drop, recipes=()).taken == {"": ["own.csv"]}


def test_a_recipe_says_how_its_rows_are_read(tmp_path):
    drop = put(tmp_path / "drops/puzzles/own", [row.replace("0", "_") for row in ROWS])
    for settings, wrong in (
        ({"blank": "_"}, 0),
        ({}, 40),
        ({"min_difficulty": 3}, 0),  # a build looks at none of these
    ):
        found = fitness(drop, kind="sudoku", settings=settings)
        assert found.rows - found.fit == wrong
        recipe = Recipe("mine", "sudoku", ("own",), settings)
        assert len(account(drop, recipes=[recipe]).notes) == bool(wrong)
    assert drop_account(drop).notes == []


def test_the_first_mebibyte_of_a_file_is_looked_at(tmp_path):
    rows = [*ROWS * 170, "1,2"]
    found = fitness(put(tmp_path, rows))
    assert found.rows == found.fit == ((1 << 20) - 16) // len(ROWS[0] + "\n")


LINE, FILLED = "1.34" * 4, "1234" * 4
PAIR = ([[1, 0], [0, 2]], [[1, 3], [3, 2]])


@pytest.mark.parametrize(
    ("name", "rows", "said"),
    [
        ("a.csv", [row.split(",") for row in ROWS], "81 cells in"),
        ("a.csv", [("q", "a"), *[(LINE, FILLED)] * 30], "16 cells in q and a"),
        (
            "a.csv",
            [[f"q{at}" for at in range(32)], *[[*LINE, *FILLED]] * 30],
            "16 cells in as many columns each",
        ),
        ("a.csv", [("x", "y"), *[tuple(map(json.dumps, PAIR))] * 30], "grids in x and y"),
        ("a.csv", [("x", "y"), *[("1 0\n0 2", "1 3\n3 2")] * 30], "grids in x and y"),
        ("a.csv", [("x", "y"), *[("#S\n.G", "#S\noG")] * 30], "grids in x and y"),
        (
            "a.jsonl",
            [{"solution": PAIR[1], "puzzle": PAIR[0]}] * 30,
            "puzzle and solution",
        ),
        (
            "a.jsonl",
            [{"input": [[1.0, 0.0]], "output": [[1.0, 2.0]]}] * 30,
            "input and output",
        ),
        ("a.parquet", [{"x": PAIR[0], "y": PAIR[1]}] * 30, "grids in x and y"),
    ],
)
def test_puzzles_in_any_columns_are_named_with_the_line_that_makes_rows_of_them(
    name, rows, said, tmp_path, monkeypatch
):
    path = tmp_path / name
    if name.endswith("csv"):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        if rows[0][0].isdecimal():  # as a look calls its columns
            rows = [("question", "answer"), *rows]
        rows = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    elif name.endswith("jsonl"):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    (hint,) = puzzle_hints(path, rows, REFUSE_LINKS)
    assert said in hint and is_bank(rows)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    subprocess.run(hint.split("`")[3], shell=True, cwd=tmp_path, check=True)
    (own,) = tmp_path.glob("own.*")
    made = fitness(own)
    assert made is not None and (made.fit, made.first) == (len(rows), None)


@pytest.mark.parametrize(
    "row",
    [
        {"question": "What is 2 + 2 here", "answer": "What is 4 + 4 here"},
        {"sha1": "a" * 64, "sha2": "b" * 63 + "c"},
        {"a": ["yes", "no"], "b": ["left", "up"]},
        {"a": "Two lines.\nOf text.", "b": "One\nTwo"},
        {"messages": [{"role": "user"}], "tools": [{"name": "x"}]},
        {"ids": [[1, 2], [3]], "mask": [1, 1]},
    ],
)
def test_texts_lists_and_hashes_are_no_puzzles(row):
    assert not is_bank([row] * 30)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("".join(f"Grid {n}\n" + "003020600\n" * 9 for n in range(3)), "9 lines of 9 cells: `awk"),
        ("\n\n".join(["#####\n#S G#\n#ooo#\n#####"] * 3), "4 lines of 5 cells: write each"),
        ("A text of words.\n" * 3, ""),
    ],
)
def test_grids_of_lines_in_a_text_are_named(text, rule, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/a.sdk").write_text(text)
    with pytest.raises(BadInput, match=re.escape(rule) or "holds no file of puzzles"):
        account(tmp_path / "own")


@pytest.mark.parametrize(
    ("shape", "rule"), [((30, 2, 2), "has grids in a.npy and b.npy: `pyth"), ((30,), "")]
)
def test_two_arrays_of_grids_are_named(shape, rule, tmp_path, monkeypatch):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.arange(np.prod(shape)).reshape(shape) % 5)
    with pytest.raises(BadInput) as refused:
        account(tmp_path)
    assert (rule or "holds no file of puzzles") in refused.value.rule
    if rule:
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        line = refused.value.rule.split("`")[1]
        subprocess.run(line, shell=True, cwd=tmp_path, check=True)
        assert fitness(tmp_path / "own.jsonl").fit == 30

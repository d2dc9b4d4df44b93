"""A look is printed a line each, and no terminal obeys what is in the files."""

import json

from click.testing import CliRunner

from gristmill.cli import main
from gristmill.look import reading
from gristmill.look.finding import look
from gristmill.look.report import lines


def test_files_columns_guess_licence_and_recipe_have_their_lines(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "README.md").write_text("license: mit")
    rows = [{"question": f"How many are {n}?", "answer": n, "note": None} for n in range(4)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert list(lines(look(folder))) == [
        f"{folder}: 2 files, {size} bytes",
        "  train: train.jsonl; 4 rows",
        "  no data file: README.md",
        "columns, of 4 rows read",
        "  question                 text                0% empty  How many are 0?",
        "  answer                   number              0% empty  0",
        "  note                     empty             100% empty",
        "guess by names: qa: question = question, answer = answer",
        "licence: MIT, says README.md",
        "note: read: question (question), answer (answer)",
        "recipe corpus.toml, a guess: it reads 4 of 4 rows tried",
        "",
        "# The licence is what README.md says: read its terms.",
        "schema = 1",
        'name = "own"',
        'licence = { id = "MIT" }',
        'files = { train = "train.jsonl" }',
        'question = "question"',
        'answer = "answer"',
        "",
        f"to write it to {folder / 'corpus.toml'}: `gristmill look --write {folder}`",
        f"then, when it is right: `gristmill drop --family reasoning --name own {folder}`",
        f"or build it as guessed: `gristmill build {folder}`",
    ]


def test_numbers_that_are_estimated_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_WHOLE_BYTES", 0)
    line = json.dumps({"question": "How many are there?", "answer": "2"}) + "\n"
    (tmp_path / "train.jsonl").write_text(line * 5000)
    text = "\n".join(lines(look(tmp_path)))
    assert "; about " in text
    assert "(estimated: --all reads every row)" in text
    whole = "\n".join(lines(look(tmp_path, is_all=True)))
    assert "train: train.jsonl; 5,000 rows\n" in whole


def test_a_month_of_chess_is_not_said_to_hold_no_data(tmp_path):
    games = tmp_path / "games_2024-01.pgn"
    games.write_text('[Event "x"]\n\n1. e4 e5 *\n')
    said = list(lines(look(games)))
    assert said[-1].startswith("read as it is: 1 file taken: `gristmill drop --family chess ")
    assert not [line for line in said if "no data file" in line]
    other = tmp_path / "games.txt"
    other.write_text("1. e4 e5 *\n")
    assert "  no data file: games.txt" in list(lines(look(other)))


def test_control_characters_of_names_and_values_are_not_printed(tmp_path):
    row = {"question\x1b[2J\n": "How many\x07 are there?", "answer": "2"}
    (tmp_path / "a\x1b\n.jsonl").write_text(json.dumps(row))
    (tmp_path / "b\n.jsonl").write_text("{")
    (tmp_path / "c\n.pgn").write_text('[Event "E"]')
    assert all(line.isprintable() for line in lines(look(tmp_path)))


def test_look_prints_and_writes_only_with_write(tmp_path):
    row = {"question": "How many are there?", "answer": "2"}
    (tmp_path / "train.jsonl").write_text(json.dumps(row))
    looked = CliRunner().invoke(main, ["look", str(tmp_path)])
    assert looked.exit_code == 0, looked.output
    assert "question = question, answer = answer" in looked.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.jsonl"]
    written = CliRunner().invoke(main, ["look", "--all", "--write", str(tmp_path)])
    assert written.output.endswith(f"written: {tmp_path / 'corpus.toml'}\n")
    assert ("to write it" in looked.output, "to write it" in written.output) == (True, False)
    again = CliRunner().invoke(main, ["look", "--write", str(tmp_path)])
    assert (again.exit_code, "is there already" in again.output) == (1, True)


def test_a_path_that_is_not_there_is_a_wrong_use(tmp_path):
    assert CliRunner().invoke(main, ["look", str(tmp_path / "gone")]).exit_code == 2

"""Rows in a terminal: which row, what is printed of it, and what is refused."""

from collections.abc import Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from gristmill.browse import open_table, shown, tables_of
from gristmill.browse.columns import of_values
from gristmill.browse.source import Record, Source, Stored
from gristmill.browse.table import Token
from gristmill.cli import main
from gristmill.contract import GristmillError
from gristmill.families import Misuse, Request
from gristmill.provenance.find_artifacts import artifacts

ROWS = [
    {
        "id": f"r{n}",
        "run": n // 50,
        "step": n % 50,
        "text": "[bold]\x1b[2J\u202e\nrun: 3" if n == 7 else "",
    }
    for n in range(200)
]


def printed(path: Path, sample: str = "", **options: object) -> str:
    out = StringIO()
    console = Console(file=out, highlight=False, markup=False, width=60)
    for each in shown.show(Request(path, sample, options)):
        console.print(each, soft_wrap=True)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tables `train` and `val` of 200 rows, and `none` without rows."""
    path = tmp_path / "rows.json"
    path.touch()

    def drawn(row: Record, options: Mapping[str, Any]) -> list[Text]:
        return [Text(f"a board of {row.number} at ply {options.get('ply')}")]

    def tokens(row: Record) -> list[Token]:
        return [
            Token("a[red]\x07", 1, counts=False, span="reasoning"),
            Token("b\n", 2, counts=True, span="answer"),
            *(Token("c", 3) for _ in range(3_000)),
        ]

    stored = partial(Stored, open=lambda: of_values(path, ROWS), terms={"run": "run"}, ids=("id",))
    declared = [
        ("chess/valid_games", stored("train", chosen={"split": "train"}, drawn=drawn)),
        ("chess/valid_games", stored("val", chosen={"split": "val"}, tokens=tokens)),
        ("chess/valid_games", Stored("none", lambda: of_values(path, []))),
        ("chess/valid_games", Stored("boards", lambda: of_values(path, ROWS), drawn=drawn)),
    ]
    monkeypatch.setattr(shown, "declared_tables", lambda _: declared)
    return tmp_path


def heads(text: str) -> list[int]:
    return [int(line.split()[2]) for line in text.splitlines() if " of 200" in line]


def test_a_row_is_named_by_number_id_or_options_and_its_text_is_not_obeyed(folder):
    assert heads(printed(folder)) == [0]
    assert heads(printed(folder, "199")) == [199]
    assert heads(printed(folder, "r42")) == [42]
    assert heads(printed(folder, "step=3")) == [3]
    assert "others that fit: rows 53, 103, 153; all of them: gristmill" in printed(folder, "step=3")
    assert heads(printed(folder, run=2)) == [100, 109, 119, 129, 139, 149]
    assert printed(folder, split="val").startswith("val: row 0 of 200")
    assert printed(folder, table="val", ply=None) == printed(folder, split="val")
    escaped = "[bold]\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}\n  run: 3\n"
    assert escaped in printed(folder, "7")
    assert "a[red]\N{REPLACEMENT CHARACTER}" in printed(folder, split="val")


def test_a_table_is_named_in_the_place_of_a_row(folder, monkeypatch):
    assert printed(folder, "val") == printed(folder, table="val")
    of_day = Stored("a.b", lambda: of_values(folder, ROWS), partition="2026-11-22")
    of_shard = Stored("x/07", lambda: of_values(folder, ROWS), partition="07")
    monkeypatch.setattr(shown, "declared_tables", lambda _: [("a", of_shard), ("a", of_day)])
    assert printed(folder, "2026-11-22").startswith("a.b: row 0 of 200")
    assert printed(folder, "07").startswith("x/07: row 7 of 200")  # a number is one of a row


def test_an_id_that_says_its_row_is_not_looked_for(folder, monkeypatch):
    def never() -> Source:
        raise AssertionError

    other = Stored("other", never, ids=("id",), named=lambda _: ())
    numbered = Stored(
        "rows",
        lambda: of_values(folder, ROWS),
        named=lambda text: int(text[1:]) if text[:1] == "n" else ("id",) if text else (),
    )
    monkeypatch.setattr(shown, "declared_tables", lambda _: [("a", other), ("a", numbered)])
    assert heads(printed(folder, "n0")) == [0]
    assert heads(printed(folder, "r5")) == [5]
    with pytest.raises(GristmillError, match="there is no row 200"):
        printed(folder, "n200")


def test_a_drawing_comes_with_its_options_else_tokens_in_colours(folder):
    assert "a board of 5 at ply 3" in printed(folder, "5", ply=3)
    text = printed(folder, split="val")
    assert "reasoning" in text.split("text: ")[1].splitlines()[1]
    assert "… and 1,002 more tokens" in text
    assert "italic: masked, not in the loss" in text
    (colours,) = [
        each
        for each in shown.show(Request(folder, "", {"split": "val"}))
        if isinstance(each, Text) and "reasoning" in each.plain
    ]
    styles = [(colours.plain[span.start], span.style) for span in colours.spans]
    assert [style for first, style in styles if first in "abc"][:4] == [
        *("italic black on navajo_white1", "black on light_goldenrod2"),
        *("black on grey85", "black on grey78"),
    ]


@pytest.mark.parametrize(
    ("sample", "options", "kind", "rule"),
    [
        ("200", {}, GristmillError, "train has 200 rows, which count from 0: there is no row 200"),
        ("9" * 18, {}, GristmillError, "there is no row 999,999"),
        ("9" * 9999, {}, GristmillError, "at most 1,000 characters"),
        ("r999", {}, GristmillError, "no row has 'r999' in id: name one by its number"),
        ("nothing=3", {}, GristmillError, "no row has 'nothing=3' in id"),
        ("step=x", {}, GristmillError, "'x' is not a number"),
        ("", {"run": 9}, GristmillError, "no row has '--run 9' in run"),
        ("0", {"table": "none"}, GristmillError, "none has no rows"),
        ("", {"set": "a"}, Misuse, "--set does not apply to .*: it takes --table, --split, --run"),
        ("", {"step": 1}, Misuse, "--step does not apply"),
        ("", {"split": "test"}, Misuse, "--split test: .* has train, val"),
        ("", {"table": "val", "ply": 3}, Misuse, "--ply does not apply to .*: it takes --table"),
        ("", {"split": "val", "table": "train"}, Misuse, "--table train: .* has val"),
        ("3", {"run": 1}, Misuse, "3 and --run: name a row by one of them"),
    ],
)
def test_what_is_not_there_is_said(folder, sample, options, kind, rule):
    with pytest.raises(kind, match=rule):
        printed(folder, sample, **options)


def test_a_damaged_row_ends_the_command_with_one_line(tmp_path):
    games = tmp_path / "valid_games.jsonl"
    games.write_text('{"game_id": "x"}\n{"game_id": "y"\n')
    with pytest.raises(GristmillError, match=r"valid_games\.jsonl:2: "):
        printed(tmp_path, "1", table="games")
    assert "game_id: x" in printed(tmp_path, "0", table="games")
    assert "origin: " in printed(tmp_path, "0", table="games")


def test_a_json_file_is_shown_whole(tmp_path, monkeypatch):
    rows = [{"key": f"a.{n}", "value": "\x1b[2J" if n else "[bold]x"} for n in range(1_002)]
    stored = Stored("2026-11-22.json", lambda: of_values(tmp_path, rows), ids=("key",))
    monkeypatch.setattr(shown, "declared_tables", lambda _: [("reasoning/qc_report", stored)])
    first, second, *_, last = printed(tmp_path).splitlines()[1:]
    assert (first, second) == ("a.0: [bold]x", "a.1: \N{REPLACEMENT CHARACTER}[2J")
    assert last == "… and 2 more members"
    assert "key: a.7" in printed(tmp_path, "a.7")


@pytest.mark.slow
def test_every_table_of_every_artifact_is_shown(sample_root):
    places = {found.folder for found in artifacts(sample_root.data)}
    # In samples no audit finds a question.
    for place in sorted(each for each in places if each.parent.name != "leaks"):
        for name in tables_of(place):
            table = open_table(place, name=name)
            (first,) = table.rows(0, 1)
            text = printed(place, "0", table=name)
            assert f"row 0 of {table.count:,}" in text
            assert all(f"{column.name}: " in text for column in table.columns)
            for column in table.columns:
                value = str(first.cells[column.name] or "")
                if column.filterable and 0 < len(value) < 1000:
                    by_value = printed(place, f"{column.name}={value}", table=name)
                    assert by_value.replace(text, "").count("\n") <= 1
                    break
        for _, stored in shown.declared_tables(place):
            table = open_table(place, name=stored.name)
            cells = table.rows(table.count - 1, 1)[0].cells if table.count else {}
            for column in stored.ids:
                assert f"{column}: {cells[column]}" in printed(place, str(cells[column]))
            assert printed(place, **stored.chosen)
            given = {option: cells[column] for option, column in stored.terms.items()}
            if given:
                assert printed(place, **stored.chosen, **given)


def test_the_command_shows_what_no_family_draws(tmp_path):
    (tmp_path / "rejected_games.csv").write_text("game_id,reason\nx,short\n")
    (tmp_path / "valid_games.jsonl").write_text('{"game_id": "x", "moves": "e2e4"}\n')
    done = CliRunner().invoke(main, ["show", str(tmp_path), "moves=e2e4", "--table", "games"])
    assert done.exit_code == 0, done.output
    assert "games: row 0 of 1\ngame_id: x" in done.output
    beyond = CliRunner().invoke(main, ["show", str(tmp_path), "--table", "nothing"])
    assert beyond.exit_code == 2
    assert "--table nothing" in beyond.output

"""What an inbox of files and folders takes for a drop, the keys in a list, and short lists."""

import os
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.families import drop_kind
from gristmill.inbox.listing import (
    FACT,
    FOLDER,
    IGNORED,
    READ,
    TOML,
    UNREAD,
    Account,
    ColumnState,
    column_lines,
    named_few,
    unfit_name,
)

CHESS = drop_kind("chess").shape


def entry(path: Path) -> os.DirEntry[str]:
    return next(each for each in os.scandir(path.parent) if each.name == path.name)


def test_a_folder_is_a_drop_beside_files_and_its_key_is_its_name(tmp_path: Path) -> None:
    for name, key in (("twic", "twic"), ("my_2024-01", "my_2024-01"), ("2024-01", "2024-01")):
        (tmp_path / name).mkdir()
        found = entry(tmp_path / name)
        assert (CHESS.refusal(found), CHESS.key_of(name)) == (None, key)
    (tmp_path / "a_2024-02.PGN").touch()
    assert CHESS.key_of("a_2024-02.PGN") == "2024-02"
    (tmp_path / "b.pgn").mkdir()
    assert "is a folder, and its name ends in .pgn" in str(CHESS.refusal(entry(tmp_path / "b.pgn")))
    (tmp_path / "c d").mkdir()
    assert "may hold only ASCII letters" in str(CHESS.refusal(entry(tmp_path / "c d")))
    (tmp_path / "plain").touch()
    assert "only files that end in" in str(CHESS.refusal(entry(tmp_path / "plain")))
    assert "A .zip or .pgn or .pgn.zst file that" in CHESS.settles
    assert "or a folder whose files" in CHESS.settles


def test_lists_name_keys_drops_and_links_and_are_cut_with_a_count() -> None:
    text = (
        "# months\n\n2024-01\n https://x/lichess_elite_2024-02.zip?raw=1\n"
        "drops/chess/elite_2024-03.pgn\nmy_2024-01\n2024-01\n"
    )
    assert CHESS.keys_in(text, "months.txt") == ["2024-01", "2024-02", "2024-03", "my_2024-01"]
    assert TOML.keys_in("one.toml\ntwo", "x") == ["one", "two"]
    assert FOLDER.keys_in("a.b\r\n", "x") == ["a.b"]
    names = [str(number) for number in range(11)]
    assert named_few(names[:10]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert named_few(names) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 1 more"

    def line(count: int) -> str:
        (only,) = Account({}, {f"{number:04}": "no data" for number in range(count)}).lines
        return only

    five = "0000, 0001, 0002, 0003, 0004"
    assert line(5) == f"0 files taken; 5 left out: {five} (no data)"
    assert line(1_006) == f"0 files taken; 1,006 left out: {five} and 1,001 more (no data)"
    (line,) = Account({}, {"\x1b[31m\n\udcff": "no data"}).lines
    assert line.isprintable()
    line.encode()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("ok\nnot a key\n", r"list.txt:2: the name 'not a key' may hold only"),
        ("https://x/\n", r"list.txt:1: the name '' may hold only"),
        ("# none\n\n", r"list.txt: has no partition: write one a line"),
    ],
)
def test_a_line_that_names_no_partition_is_refused(text: str, rule: str) -> None:
    with pytest.raises(BadInput, match=rule):
        CHESS.keys_in(text, "list.txt")


@pytest.mark.parametrize(
    ("account", "lines"),
    [
        (Account(), ["0 files taken"]),
        (Account({"": ["a"]}), ["1 file taken"]),
        (Account({"": [f"{number:04}" for number in range(1_234)]}), ["1,234 files taken"]),
        (
            Account({"": ["c"]}, {"b.txt": "no data", "a.txt": "no data", "old/": "a second copy"}),
            ["1 file taken; 3 left out: a.txt, b.txt (no data); old/ (a second copy)"],
        ),
        (
            Account({"train": ["a", "b"], "test": ["c"]}, {"d": "of no split"}),
            ["train: 2 files taken", "test: 1 file taken", "1 left out: d (of no split)"],
        ),
        (Account({"train": ["a"]}), ["train: 1 file taken"]),
    ],
)
def test_an_account_has_a_line_a_split_and_joins_what_is_left_out_by_its_reason(account, lines):
    assert account.lines == lines


def test_an_account_has_what_is_left_out_and_what_waits_is_no_failure():
    account = Account({"train": ["a"], "test": ["b"]}, {"c": "no data"}, ["a note"])
    assert account.of("train") == Account({"": ["a"]}, {"c": "no data"}, ["a note"])
    assert account.of("validation").lines == ["0 files taken; 1 left out: c (no data)", "a note"]


@pytest.mark.parametrize(
    ("names", "unfit", "rule"),
    [
        (["train.csv", "train (1).csv"], "train (1).csv", "a copy of train.csv, whose contents"),
        (["a/x.pgn.zst", "a/x(2).pgn.zst"], "a/x(2).pgn.zst", "a copy of a/x.pgn.zst"),
        (["x - Copy.npz", "x.npz"], "x - Copy.npz", "a copy of x.npz"),
        (["x.csv", "x.csv.part"], "x.csv.part", "have not finished"),
        (["x.csv.CRDOWNLOAD"], "x.csv.CRDOWNLOAD", "have not finished"),
        (["a/x.tmp"], "a/x.tmp", "remove it"),
        (["train (1).csv", "test.csv", "train (2).csv", "copy.csv"], None, ""),
        (["b/train.csv", "a/train (1).csv"], None, ""),
        ([], None, ""),
    ],
)
def test_copies_and_unfinished_files_are_known_by_their_names(names, unfit, rule):
    found = unfit_name(names)
    assert (None if found is None else found[0]) == unfit
    assert found is None or rule in found[1]


KEEP = 'keep = [{ column = "ok", equals = 1 }]'


def test_an_account_has_a_line_a_state_and_a_line_a_rule() -> None:
    states = [
        ColumnState("a", READ, "question"),
        ColumnState("id", FACT, "id"),
        ColumnState("c", UNREAD, 'as "x"', 3),
        ColumnState("rare", UNREAD, rows=1),
        ColumnState("much", UNREAD, rows=1234),
        ColumnState("ok", UNREAD, "as 0, 1", values="0 (3), 1 (4)", keep=KEEP),
        ColumnState("set", UNREAD, values="train (3)", keep=KEEP, is_split=True),
        ColumnState("gone", IGNORED),
    ]
    assert column_lines(states) == [
        "read: a (question)",
        'not read: c (as "x"), rare (in 1 row), much (in 1,234 rows), ok (as 0, 1), set',
        "facts of the rows, not read: id (id)",
        "ignored, as the recipe says: gone",
        f"ok has two values, 0 (3), 1 (4): if it says which rows are right, {KEEP}",
        "rows name their split in set: train (3), and would be mixed: write a file for each, or "
        f"take one by {KEEP}",
        f"several of these in one recipe: {KEEP[:-1]}, {KEEP[8:]}",
    ]
    assert column_lines([]) == []


def test_many_columns_are_counted_and_names_are_cut_and_made_printable() -> None:
    (line,) = column_lines([ColumnState(f"c{n}", UNREAD) for n in range(15)])
    assert line.endswith("c11 and 3 more")
    (line,) = column_lines([ColumnState("\x1b[31m" + "n" * 99, UNREAD)])
    assert "\x1b" not in line and "more characters" in line

"""The lines of an account of columns: one a state, one for each column that may divide rows."""

from gristmill.inbox.columns import FACT, IGNORED, READ, UNREAD, ColumnState, column_lines

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

"""Text of drops in the terminal: shown as it is, on one line."""

from rich.text import Text

from commands.terminal import shown, shown_lines


def test_text_of_a_drop_cannot_steer_the_terminal() -> None:
    line = shown("[red]a[/]\nb\x1b[2J\x07\u202e [link=https://evil.example]x[/link]")
    plain = Text.from_markup(line).plain
    assert plain == "[red]a[/] b\ufffd[2J\ufffd\ufffd [link=https://evil.example]x[/link]"
    assert not Text.from_markup(line).spans
    assert shown("x" * 3000).endswith("… and 1,000 more characters")


def test_lines_after_the_first_are_indented_and_empty_ones_left_out() -> None:
    assert shown_lines("one\n\n   two\t[x]\r\nbuilt\x1b[2J\n") == (
        "one\n  two \\[x]\n  built\N{REPLACEMENT CHARACTER}[2J"
    )
    assert shown_lines("x" * 3000).endswith("and 1,000 more characters")

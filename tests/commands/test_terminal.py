"""Text of drops in the terminal: shown as it is, on one line."""

from __future__ import annotations

from rich.text import Text

from commands.terminal import shown


def test_text_of_a_drop_cannot_steer_the_terminal() -> None:
    line = shown("[red]a[/]\nb\x1b[2J\x07\u202e [link=https://evil.example]x[/link]")
    plain = Text.from_markup(line).plain
    assert plain == "[red]a[/] b\ufffd[2J\ufffd\ufffd [link=https://evil.example]x[/link]"
    assert not Text.from_markup(line).spans
    assert shown("x" * 3000).endswith("… and 1,000 more characters")

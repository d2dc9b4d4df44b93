"""Markdown: untrusted text in a table, a list or a line stays text."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill import markdown
from gristmill.markdown import Markdown

HOSTILE = {
    "pipe": ("a|b", r"a\|b"),
    "backslash before a pipe": ("a\\|b", r"a\\\|b"),
    "last backslash": ("a\\", r"a\\"),
    "new line": ("a\n| b | c |", r"a \| b \| c \|"),
    "carriage return": ("a\r\n\rb", "a b"),
    "other line ends": ("a\x85b\u2028c\u2029d\x0be\x0cf", "a b c d e f"),
    "control characters": ("a\x00b\x1bc\x7f", "a b c"),
    "backquotes": ("`a``", r"\`a\`\`"),
    "HTML": ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    "entity": ("&lt;b&gt; &#60;", "&amp;lt;b&amp;gt; &amp;#60;"),
    "link": ("[a](http://b.c)", r"\[a\](http:&#8203;//b.c)"),
    "image": ("![a](data:x)", r"\!\[a\](data:x)"),
    "link of a bare address": ("see HTTPS://b.c", "see HTTPS:&#8203;//b.c"),
    "link of a bare host": ("WWW.b.c", "WWW&#8203;.b.c"),
    "link of a mail address": ("a@b.c", "a@&#8203;b.c"),
    "emphasis": ("*a* _b_ ~~c~~", r"\*a\* \_b\_ \~\~c\~\~"),
    "bidirectional controls": ("a\u202eb\u2066c\u200fd\u061c", "a\ufffdb\ufffdc\ufffdd\ufffd"),
    "zero-width characters": ("a\u200bb\ufeff", "a\ufffdb\ufffd"),
    "lone surrogate": ("a\udc80", "a\ufffd"),
    "ordinary text": ("Nimzo-Indian (E20), Défense 象棋 😀", "Nimzo-Indian (E20), Défense 象棋 😀"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_becomes_text_on_one_line(name: str) -> None:
    text, expected = HOSTILE[name]
    assert markdown.escape(text) == expected


def _cells(line: str) -> list[str]:
    """Cells of a table's line by GitHub's rule: a pipe after an unpaired backslash is text."""
    cells = re.findall(r"\|((?:\\[\\|]|[^|])*)(?=\|)", line)
    return [cell.strip() for cell in cells]


def _shown(cell: str) -> str:
    """What a cell of escaped text shows."""
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell)).replace("\u200b", "")


@given(st.lists(st.text(), min_size=3, max_size=3))
def test_any_text_stays_in_its_cell_and_shows_as_it_is(texts: list[str]) -> None:
    lines = markdown.table(("a", "b", "c"), [texts], "llr").split("\n")
    assert len(lines) == 3
    assert [_shown(cell) for cell in _cells(lines[2])] == [
        markdown._one_line(text) for text in texts
    ]
    assert lines[2].isprintable()


@given(st.text(alphabet="`|\\[]()<>!&*_~:/w.@a \n", max_size=12))
def test_no_special_character_is_left_bare(text: str) -> None:
    bare = re.sub(r"\\[!-/:-@\[-`{-~]|&(amp|lt|gt|#8203);", "", markdown.escape(text))
    assert not re.search(r"[`|\\\[\]<>!&*_~]", bare)
    escaped = html.unescape(markdown.escape(text))
    assert not re.search(r"://|www\.|@[\w-]", escaped, re.IGNORECASE)


@pytest.mark.parametrize("text", ["`", "a`b", "a|b", "a\\", "\\|", "``"])
def test_text_that_would_end_a_code_span_or_its_cell_is_escaped_instead(text: str) -> None:
    assert markdown.code(text) == markdown.escape(text)


def test_a_code_span_holds_other_text_literally() -> None:
    assert markdown.code("a_b <c> [d]\n*e*") == "`a_b <c> [d] *e*`"
    assert markdown.code(" \n") == ""
    assert markdown.code("abcdef", limit=4) == "`abc…`"
    assert markdown.code("ab\udc80\u202e") == "`ab\ufffd\ufffd`"


def test_a_limit_counts_characters_before_they_are_escaped() -> None:
    assert markdown.escape("<<<<", limit=4) == "&lt;" * 4
    assert markdown.escape("<<<<<", limit=4) == "&lt;" * 3 + "…"


def test_a_table_aligns_pads_and_keeps_markdown() -> None:
    image = markdown.image("a]b", "<svg/>")
    assert image.startswith(r"![a\]b](data:image/svg+xml")
    rows = [("x", "1"), (Markdown("**y**"),), (markdown.bold("|"), image)]
    assert markdown.table(("name", "a|b"), rows, "lr").split("\n") == [
        r"| name | a\|b |",
        "|---|---:|",
        "| x | 1 |",
        "| **y** |  |",
        rf"| **\|** | {image} |",
    ]


def test_a_row_that_is_too_long_and_a_wrong_alignment_are_errors() -> None:
    with pytest.raises(ValueError, match="a row of 2 cells in a table of 1 columns"):
        markdown.table(("a",), [("b", "c")], "l")
    with pytest.raises(ValueError, match="a table of 1 columns has 2 letters"):
        markdown.table(("a",), [], "lr")


def test_items_of_a_list_stay_on_their_lines() -> None:
    assert markdown.bullets(["a\n* b", markdown.code("c_d")]) == "* a \\* b\n* `c_d`"

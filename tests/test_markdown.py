"""Markdown: untrusted text in a list or a line stays text."""

import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gristmill import markdown
from tests.drawings import images

HOSTILE = {
    "heading": ("# a", r"\# a"),
    "line under a heading": ("===", r"\==="),
    "list": ("- a", r"\- a"),
    "other list": ("+ a", r"\+ a"),
    "numbered list": ("1. a 1. b", r"1\. a 1. b"),
    "other numbered list": ("12) a", r"12\) a"),
    "rule": ("---", r"\---"),
    "footnote": ("[^1]: a", r"\[\^1\]: a"),
    "formula": ("$a$", r"\$a\$"),
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
    "underscores in words": ("a_b__c d_ _e __f__ é_é", r"a_b__c d\_ \_e \_\_f\_\_ é\_é"),
    "bidirectional controls": ("a\u202eb\u2066c\u200fd\u061c", "a\ufffdb\ufffdc\ufffdd\ufffd"),
    "zero-width characters": ("a\u200bb\ufeff", "a\ufffdb\ufffd"),
    "lone surrogate": ("a\udc80", "a\ufffd"),
    "numbers": ("-5", "-5"),
    "version": ("1.5 #5", "1.5 #5"),
    "ordinary text": ("Nimzo-Indian (E20), Défense 象棋 😀", "Nimzo-Indian (E20), Défense 象棋 😀"),
}


@pytest.mark.parametrize("text", ["<b>&amp;</b> \\ ~", "https://a.b @c", "`a` $x$ [d](e)", "1. a"])
def test_a_terminal_shows_the_text_that_was_escaped(text: str) -> None:
    assert markdown.escape(text) != text
    assert markdown.unescaped(markdown.escape(text)) == text


@pytest.mark.parametrize("text", [text for text, _ in HOSTILE.values() if text.isprintable()])
def test_a_terminal_shows_hostile_text_as_it_came(text: str) -> None:
    assert markdown.unescaped(markdown.escape(text)) == " ".join(text.split())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_becomes_text_on_one_line(name: str) -> None:
    text, expected = HOSTILE[name]
    assert markdown.escape(text) == expected


@given(st.text())
def test_any_text_stays_on_its_line_and_shows_as_it_is(text: str) -> None:
    escaped = markdown.escape(text)
    assert escaped.isprintable()
    shown = html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped)).replace("\u200b", "")
    assert shown == markdown._one_line(text)


@given(st.text(alphabet="`|\\[]()<>!&*_~:/w.@a \n", max_size=12))
def test_no_special_character_is_left_bare(text: str) -> None:
    bare = re.sub(r"\\[!-/:-@\[-`{-~]|&(amp|lt|gt|#8203);", "", markdown.escape(text))
    bare = re.sub(r"(?<=[a-z])_+(?=[a-z])", "", bare)  # in a word it is no emphasis
    assert not re.search(r"[`|\\\[\]<>!&*_~]", bare)
    escaped = html.unescape(markdown.escape(text))
    assert not re.search(r"://|www\.|@[\w-]", escaped, re.IGNORECASE)


@pytest.mark.parametrize("text", ["`", "a`b", "a|b", "a\\", "\\|", "``"])
def test_text_that_would_end_a_code_span_is_escaped_instead(text: str) -> None:
    assert markdown.code(text) == markdown.escape(text)


def test_a_code_span_holds_other_text_literally() -> None:
    assert markdown.code("a_b <c> [d]\n*e*") == "`a_b <c> [d] *e*`"
    assert markdown.code(" \n") == ""
    assert markdown.code("abcdef", limit=4) == "`abcd… and 2 more characters`"
    assert markdown.code("ab\udc80\u202e") == "`ab\ufffd\ufffd`"


def test_limits_count_characters_before_they_are_escaped_and_lists_what_is_left_out() -> None:
    assert markdown.escape("<<<<", limit=4) == "&lt;" * 4
    assert markdown.escape("<<<<<", limit=4) == "&lt;" * 4 + "… and 1 more character"
    assert markdown.escape("x" * 3_000_000) == "x" * 1000 + "… and 2,999,000 more characters"
    assert markdown.escape("x" * 100_000) == "x" * 1000 + "… and 99,000 more characters"
    assert markdown.code("x" * 1000) == f"`{'x' * 1000}`"
    spaced = markdown.escape(" " * 90_000 + "a b" + " " * 90_000)
    assert spaced == "a b… and 180,000 more characters"
    assert markdown.bullets(["a\n* b", markdown.code("c_d")]) == "* a \\* b\n* `c_d`"
    lines = markdown.bullets(str(n) for n in range(62)).split("\n")
    assert lines[49:] == ["* 49", "* … and 12 more"]
    assert len(markdown.bullets("a" for _ in range(50)).split("\n")) == 50
    assert [markdown.stored_size(text) for text in ("a", "é", "😀", '"', "\n")] == [1, 6, 12, 2, 2]


# The rules by which the UI makes links of bare text, from mdast-util-gfm-autolink-literal.
LINKS = (
    re.compile(r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)", re.IGNORECASE | re.ASCII),
    re.compile(r"([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)", re.ASCII),
)
PIECES = [
    *"`|\\[]()<>!&*_~:/w.@a #-+=1\n\t$^{}'\"\u202e\u200b\x1b\ud800",
    "www.a.bc",
    "https://a.bc/d",
    "a@b.cd",
    "mailto:a@b.cd",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "![x](https://a.bc/d.png)",
    "[x](javascript:alert(1))",
    "[x][y]",
    "\n[y]: https://a.bc\n",
    "\n\n# heading\n===\n---\n",
    "\n```\n",
    "&#x3c;script&#x3e;",
    "<!-- -->",
    "@team",
]
ALLOWED = {
    *("paragraph_open", "paragraph_close", "inline", "text", "code_inline", "text_special"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
}
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _tokens(document: str) -> Iterator[Token]:
    for token in PARSER.parse(document):
        yield token
        yield from token.children or ()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
def test_text_in_any_place_is_rendered_as_the_text_that_it_was(text: str) -> None:
    expected = markdown._one_line(text)
    places = {
        "line": markdown.escape(text),
        "item": markdown.bullets([text]),
        "code item": markdown.bullets([markdown.code(text)]),
    }
    for name, document in places.items():
        tokens = list(_tokens(document))
        assert {token.type for token in tokens} <= ALLOWED, name
        leaves = [
            token for token in tokens if token.type in ("text", "text_special", "code_inline")
        ]
        shown = "".join(token.content for token in leaves).replace("\u200b", "")
        assert shown == (expected if document else ""), name
        bare = "".join("\n" if token.type == "code_inline" else token.content for token in leaves)
        assert not any(link.search(bare) for link in LINKS), name


def test_a_small_picture_is_written_as_it_is_and_shown_without_a_click() -> None:
    drawing = "<svg xmlns='x'><title>a &amp; \\ #1 100% {}</title>\n</svg>"
    found = markdown.image("a | b", drawing)
    assert found.startswith("![a \\| b](<data:image/svg+xml,")
    assert "\n" not in found
    assert images(found) == [drawing]
    parser = MarkdownIt()
    parser.validateLink = lambda _: True  # type: ignore[method-assign]
    (line,) = parser.parseInline(found)
    (image,) = line.children or []
    address = str(image.attrs["src"])
    assert "#" not in address
    assert unquote(address) == f"data:image/svg+xml,{drawing}"

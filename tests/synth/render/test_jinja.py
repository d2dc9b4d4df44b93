"""A person's template: exact spans and ids over six templates, hostile files, what is refused."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
import tiktoken

from gristmill.contract import BadInput
from gristmill.synth.builders.harmony_shard import open_shard
from gristmill.synth.format import harmony_tokens
from gristmill.synth.render import jinja
from gristmill.synth.render.assemble import OUTSIDE, Piece, Turn, assemble, with_turn_ends, words_of
from gristmill.vocabularies.encode import encoding
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned
from tests.synth.render.talks import TEMPLATES, talk

FILE = Path("chat_template.jinja")
HI = [Turn("user", "hi", 0), Turn("assistant", " hello\n", 2, "hm", 1)]
SIMPLE = "{% for m in messages %}<|start|>{{ m.role }} {{ m.content | trim }}<|end|>{% endfor %}"


def render(source: str, *talks: list[Turn], kwargs: str = "{}", thinking: str = "tags") -> Any:
    """What a template makes of conversations."""
    return jinja.rendered(FILE, source, kwargs, "2026-01-01", thinking, list(talks))


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def whole_encoding(vocabulary: Path) -> tiktoken.Encoding:
    """An encoding that takes the texts of Harmony's control tokens for these."""
    plain = encoding(vocabulary)
    special = {text: token for token, text in harmony_tokens.NAMES.items()}
    return tiktoken.Encoding(
        "whole",
        pat_str=plain._pat_str,
        mergeable_ranks=plain._mergeable_ranks,
        special_tokens=special,
    )


def check(name: str, count: int, vocabulary: Path, control: bool) -> int:
    """Compare the spans and ids of random conversations; return how many thoughts are dropped."""
    words = words_of(of_pinned(O200K, vocabulary))
    random = Random(f"{name}{control}")
    talks = [talk(random, control) for _ in range(count)]
    made = render(TEMPLATES[name], *talks, kwargs='{"bos_token": "<|startoftext|>"}')
    assert not [found for found in made if isinstance(found, str)]
    reference, dropped = whole_encoding(vocabulary), 0
    for turns, (pieces, lost) in zip(talks, made, strict=True):
        dropped += lost
        shown = [piece for piece in pieces if piece.message != OUTSIDE]
        # Each text is there once, in order, with its own span; a dropped thought is not.
        wanted = [
            (part.strip(), span)
            for turn in turns
            for part, span in ((turn.thought, turn.thought_span), (turn.content, turn.span))
            if part.strip()
        ]
        rest = iter(wanted)
        assert all((piece.text, piece.span) in rest for piece in shown)
        assert len(wanted) - len(shown) >= lost
        ended = with_turn_ends(pieces, words.control)
        assert joined(ended) == joined(pieces)
        ids = assemble([ended], words).tokens[:-1].tolist()
        if not control:
            assert ids == reference.encode(joined(pieces), allowed_special="all"), turns
        else:
            in_template = sum(
                len(words.control.findall(piece.text))
                for piece in pieces
                if piece.message == OUTSIDE
            )
            assert sum(token >= harmony_tokens.BODY_LIMIT for token in ids) == in_template
            assert reference.decode(ids) == joined(pieces)
    return dropped


@pytest.mark.parametrize("name", TEMPLATES)
def test_spans_and_ids_are_exact_over_random_conversations(name, vocabulary):
    dropped = check(name, 40, vocabulary, control=False)
    check(name, 12, vocabulary, control=True)
    assert (dropped > 0) == (name in ("qwen", "r1"))


@pytest.mark.slow
@pytest.mark.parametrize("name", TEMPLATES)
def test_spans_and_ids_are_exact_over_ten_thousand_conversations(name, vocabulary):
    for _ in range(10):
        check(name, 900, vocabulary, control=False)
        check(name, 100, vocabulary, control=True)


def test_a_template_sees_what_templates_expect_and_marks_of_thoughts_are_trained_on(vocabulary):
    source = (
        "{{ strftime_now('%d %b %Y') }}|{{ ['é'] | tojson }}|{{ bos_token }}|{{ tools is none }}|"
        "{{ add_generation_prompt }}|{% for m in messages %}{{ m.reasoning_content }}"
        "{{ m.content }}{% if loop.first %}{% continue %}{% endif %}{% break %}{% endfor %}"
    )
    ((pieces, _),) = render(source, HI, kwargs='{"bos_token": "<s>"}', thinking="field")
    assert joined(pieces) == '01 Jan 2026|["é"]|<s>|True|False|hihm hello\n'
    words = words_of(of_pinned(O200K, vocabulary))
    ((pieces, lost),) = render(TEMPLATES["qwen"], [*HI[:1], HI[1]._replace(content="hello")])
    spans = [(piece.text, piece.span) for piece in with_turn_ends(pieces, words.control)]
    assert lost == 0
    assert spans[-6:] == [
        ("<think>\n", 1),
        ("hm", 1),
        ("\n</think>\n\n", 1),
        ("hello", 2),
        ("<|end|>", 2),
        ("\n", 0),
    ]


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("{{ raise_exception('Only one turn!') }}", "refuses it (TemplateError: Only one turn!)"),
        ("{{ messages[9].content }}", "refuses it (UndefinedError"),
        ("{{ ''.__class__.__mro__ }}", "refuses it (SecurityError"),
        ("{% set _ = messages.append(1) %}", "refuses it (SecurityError"),
        ("{% for i in range(10**6) %}{% endfor %}", "refuses it (OverflowError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "refuses it (RecursionError"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "changes its texts"),
        ("{{ messages[0].content[:1] }}{{ messages[1].content }}", "changes its texts"),
        ("{{ messages[0].content | length }}{{ messages[1].content }}", "changes its texts"),
        ("{{ messages[1].content }}", "leaves out the text of message 1"),
        (SIMPLE.replace("role", "content | length"), "changes its texts"),
    ],
)
def test_a_conversation_is_refused_with_what_the_template_does(source, rule):
    ((found),) = render(source, HI)
    assert isinstance(found, str)
    assert rule in found
    ((pieces, _),) = render(SIMPLE, HI)
    assert joined(pieces).startswith("<|start|>user hi<|end|>")


def test_a_file_that_is_no_template_is_refused_and_a_marker_in_a_text_is_a_text():
    with pytest.raises(BadInput, match=r"is no Jinja template: .*endfor") as raised:
        render("\n{% for m in messages %}", HI)
    assert (raised.value.file, raised.value.row) == (str(FILE), 2)
    with pytest.raises(BadInput, match="no Jinja template"):
        render("{% include 'x' %", HI)
    odd = [Turn("user", "\ue0001\ue001", 0), Turn("assistant", "b", 2)]
    ((pieces, _),) = render(SIMPLE, odd)
    assert [piece.text for piece in pieces if piece.message != OUTSIDE] == ["\ue0001\ue001", "b"]
    assert "changes its texts" in render("\ue0007\ue001" + SIMPLE, odd)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "seconds",
        ),
        ("{{ 'x' * (10 ** 10) }}", "memory"),
    ],
)
def test_a_hostile_template_ends_in_its_child(monkeypatch, source, rule):
    monkeypatch.setattr(jinja, "_SECONDS", 1)
    with pytest.raises(BadInput, match=rule) as raised:
        render(source, HI)
    assert raised.value.file == str(FILE)
    ((pieces, _),) = render(SIMPLE, HI)
    assert len(pieces) == 7


def test_a_child_that_has_read_parquet_has_memory_left(write_rows):
    """Its libraries have taken address space, which counts."""
    with open_shard(write_rows([("a", "{}")])) as shard:
        assert len(list(shard.batches(1, ["synth_id"], [0]))) == 1
    (found,) = render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", HI)
    assert "RecursionError" in found

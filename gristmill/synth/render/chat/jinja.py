"""A person's Jinja template: conversations to pieces, in a child process with limits.

A template is untrusted: the sandbox bounds what it may name, the child its memory and its time.
Spans come from private markers: each text is rendered once as a marker, and the markers are where
the texts are. Source: `docs/formats/chat.md#jinja`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gristmill.contract import BadInput
from gristmill.printable import cut, printable
from gristmill.synth.render.chat.pieces import OUTSIDE, Piece, Turn
from gristmill.untrusted import child

if TYPE_CHECKING:
    from jinja2 import Template

_SECONDS: Final = 60
_MEMORY_BYTES: Final = 1 << 30
_MOST_CHARACTERS: Final = 32 << 20
_MOST_RULE: Final = 200
_BEGIN, _END = "\ue000", "\ue001"
_MARKER: Final = re.compile(f"{_BEGIN}([0-9]+){_END}")
_THINK, _THOUGHT = "<think>\n", "\n</think>\n\n"


def rendered(
    template: Path, source: str, kwargs: str, date: str, thinking: str, talks: list[list[Turn]]
) -> list[tuple[list[Piece], int] | str]:
    """Render conversations.

    template: the file, for errors. source: its text. kwargs: variables for it, as JSON.
    date: the day that the template sees, as YYYY-MM-DD.
    thinking: "tags" puts thoughts into the content, "field" into `reasoning_content`.

    Returns of each its pieces and the number of thoughts to be trained on that the template drops,
    or why it is refused. Raises BadInput for a template that is no Jinja, and for one that takes
    too much memory or time.
    """
    arguments = (source, kwargs, date, thinking, talks)
    found: list[_Found] = child.run(
        _rendered, template, arguments, file=template, memory_bytes=_MEMORY_BYTES, seconds=_SECONDS
    )
    return [
        one if isinstance(one, str) else (_pieces(one[0], talk), one[1])
        for one, talk in zip(found, talks, strict=True)
    ]


_Found = tuple[list[str | int], int] | str
"""Texts of the template and numbers of texts, and how many thoughts are dropped; or a rule."""


def _pieces(parts: Sequence[str | int], turns: Sequence[Turn]) -> list[Piece]:
    """The pieces of a conversation: the child sends no text that is here already."""
    found = []
    for part in parts:
        if isinstance(part, str):
            found.append(Piece(part, 0, OUTSIDE))
            continue
        turn = turns[part // 2]
        text, span = (turn.content, turn.span) if part % 2 else (turn.thought, turn.thought_span)
        found.append(Piece(text.strip(), span, part // 2))
    return found


def _rendered(path: Path, arguments: tuple[Any, ...]) -> list[_Found]:
    source, kwargs, date, thinking, talks = arguments
    render = _Renderer(_compiled(path, source, date), json.loads(kwargs), thinking)
    return [render.pieces(talk) for talk in talks]


@lru_cache(maxsize=4)
def _compiled(path: Path, source: str, date: str) -> Template:
    """The template, with what templates of chat models expect to find."""
    from jinja2 import TemplateSyntaxError, nodes
    from jinja2.exceptions import TemplateError
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}`, which other programs mark answers by: its content alone counts."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: object) -> NoReturn:
        raise TemplateError(str(message))

    def dumped(value: object, indent: int | None = None, **_: object) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    day = datetime.fromisoformat(date)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = dumped
    environment.globals |= {"raise_exception": refuse, "strftime_now": day.strftime}
    try:
        return environment.from_string(source)
    except TemplateSyntaxError as error:
        raise BadInput(path, f"is no Jinja template: {error.message}", error.lineno) from error
    except RecursionError as error:
        raise BadInput(path, "is nested too deeply") from error


class _Renderer:
    """Renders conversations by one template."""

    def __init__(self, template: Template, kwargs: Mapping[str, Any], thinking: str) -> None:
        self._template, self._thinking = template, thinking
        self._kwargs = {"add_generation_prompt": False, "tools": None, **kwargs}

    def pieces(self, turns: Sequence[Turn]) -> _Found:
        """What a conversation becomes; or why it is refused."""
        texts = [text for turn in turns for text in (turn.thought.strip(), turn.content.strip())]
        marks = [f"{_BEGIN}{at}{_END}" if text else "" for at, text in enumerate(texts)]
        try:
            plain = self._rendered(turns, texts)
            marked = self._rendered(turns, marks)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  a template may raise anything
            name = type(error).__name__
            return _rule(f"the template refuses it ({name}: {error})")
        if len(plain) > _MOST_CHARACTERS:
            return _rule(f"the template makes more than {_MOST_CHARACTERS:,} characters of it")
        try:
            restored = _MARKER.sub(lambda match: texts[int(match[1])], marked)
        except (IndexError, ValueError):
            restored = None
        if restored != plain:
            return _rule(
                "the template changes its texts, so that where they are is not known: a template "
                "may strip them, and nothing else"
            )
        # Every second part is the number of a marker.
        parts = _MARKER.split(marked)
        found = [int(part) if at % 2 else part for at, part in enumerate(parts) if part]
        seen = {part for part in found if isinstance(part, int)}
        lost = [at for at, text in enumerate(texts) if text and at not in seen]
        for at in lost:
            if at % 2:
                return _rule(f"the template leaves out the text of message {at // 2 + 1}")
        return found, sum(turns[at // 2].thought_span > 0 for at in lost)

    def _rendered(self, turns: Sequence[Turn], texts: Sequence[str]) -> str:
        messages = []
        for at, turn in enumerate(turns):
            content = _around(turn.content, texts[2 * at + 1])
            message = {"role": turn.role, "content": content}
            if turn.thought:
                thought = _around(turn.thought, texts[2 * at])
                if self._thinking == "field":
                    message["reasoning_content"] = thought
                else:
                    message["content"] = f"{_THINK}{thought}{_THOUGHT}{content}"
            messages.append(message)
        return self._template.render(messages=messages, **self._kwargs)


def _around(whole: str, text: str) -> str:
    """A text, or its marker, with the blanks at the edges of the whole."""
    inner = whole.strip()
    return text.join(whole.split(inner, 1)) if inner else whole


def _rule(text: str) -> str:
    return cut(printable(" ".join(text.split())), _MOST_RULE)

"""A person's Jinja template: conversations to pieces, in a child process with limits.

A template is untrusted: the sandbox bounds what it may name, the child its memory and its time.
Spans come from private markers: each text is rendered once as a marker, and the markers are where
the texts are. Source: `docs/formats/chat.md#jinja`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
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
    found: list[tuple[list[Piece], int] | str] = child.run(
        _rendered, template, arguments, file=template, memory_bytes=_MEMORY_BYTES, seconds=_SECONDS
    )
    return found


def _rendered(path: Path, arguments: tuple[Any, ...]) -> list[tuple[list[Piece], int] | str]:
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

    def pieces(self, turns: Sequence[Turn]) -> tuple[list[Piece], int] | str:
        """The pieces of a conversation, and how many thoughts are dropped; or why it is refused."""
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
        found, seen = [], set[int]()
        for text, number in _divided(marked):
            if number is None:
                found.append(Piece(text, 0, OUTSIDE))
                continue
            seen.add(number)
            turn = turns[number // 2]
            span = turn.span if number % 2 else turn.thought_span
            found.append(Piece(texts[number], span, number // 2))
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


def _divided(marked: str) -> Iterator[tuple[str, int | None]]:
    """The texts between markers, and the number of each marker, in order."""
    at = 0
    for match in _MARKER.finditer(marked):
        if match.start() > at:
            yield marked[at : match.start()], None
        yield "", int(match[1])
        at = match.end()
    if at < len(marked):
        yield marked[at:], None


def _rule(text: str) -> str:
    return cut(printable(" ".join(text.split())), _MOST_RULE)

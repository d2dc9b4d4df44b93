"""A person's Jinja template: conversations to pieces, in a child process with limits.

The sandbox bounds what a template may name, the child its memory and time. Conversations that
differ in their texts alone are rendered once, with a private marker instead of each text: the
markers are where the texts are.
Source: `docs/formats/chat.md#jinja`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gristmill.contract import BadInput
from gristmill.printable import cut, printable
from gristmill.synth.format.harmony_tokens import PROMPT
from gristmill.synth.render.assemble import OUTSIDE, Piece, Turn
from gristmill.untrusted import child

if TYPE_CHECKING:
    from jinja2 import Template

_SECONDS: Final = 60
_MOST_CHARACTERS: Final = 32 << 20
_MOST_RULE: Final = 200
_MOST_FORMS: Final = 1024
_BEGIN, _END = "\ue000", "\ue001"
_MARKER: Final = re.compile(f"{_BEGIN}([0-9]+){_END}")
_THINK, _THOUGHT = "<think>\n", "\n</think>\n\n"


def rendered(
    template: Path,
    source: str,
    kwargs: str,
    date: str,
    thinking: str,
    talks: Sequence[Sequence[Turn]],
    finish: Callable[[Sequence[Piece]], Sequence[Piece]] = lambda pieces: pieces,
) -> list[tuple[list[Piece], int] | str]:
    """Render conversations.

    thinking: "tags" puts thoughts into the content, "field" into `reasoning_content`.
    finish: divides texts of the template, and changes spans; it sees the others as empty texts.
        Conversations of one form share what it returns. Default: nothing.
    """
    said = [[(turn.role, turn.content, turn.thought) for turn in talk] for talk in talks]
    arguments = source, kwargs, date, thinking, said
    found: list[_Form | str] = child.run(
        _rendered, template, arguments, file=template, seconds=_SECONDS
    )
    forms: dict[tuple[Any, ...], list[Piece]] = {}
    made: list[tuple[list[Piece], int] | str] = []
    for form, talk in zip(found, talks, strict=True):
        if isinstance(form, str):
            made.append(form)
            continue
        parts, lost = form
        spans = [span for turn in talk for span in (turn.thought_span, turn.span)]
        # The child sends one object for all conversations of a form.
        key = (id(form), *spans)
        if key not in forms:
            forms[key] = [*finish([_piece(part, spans) for part in parts])]
        texts = [text for turn in talk for text in (turn.thought, turn.content)]
        order = (texts[part].strip() for part in parts if isinstance(part, int))
        pieces = [
            each if each.message == OUTSIDE else Piece(next(order), each.span, each.message)
            for each in forms[key]
        ]
        made.append((pieces, sum(spans[at] > 0 for at in lost)))
    return made


_Said = tuple[str, str, str]
"""Role, content and thought of a turn."""
_Form = tuple[tuple[str | int, ...], tuple[int, ...]]
"""Texts of the template and places of texts, two for each turn; and which thoughts are dropped."""


def _piece(part: str | int, spans: Sequence[int]) -> Piece:
    if isinstance(part, str):
        return Piece(part, PROMPT, OUTSIDE)
    return Piece("", spans[part], part // 2)


def _rendered(path: Path, arguments: tuple[Any, ...]) -> list[_Form | str]:
    source, kwargs, date, thinking, talks = arguments
    render = _renderer(path, source, kwargs, date, thinking)
    return [render.form(talk) for talk in talks]


@lru_cache(maxsize=4)
def _renderer(path: Path, source: str, kwargs: str, date: str, thinking: str) -> _Renderer:
    return _Renderer(_compiled(path, source, date), json.loads(kwargs), thinking)


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
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
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
        self._forms: dict[tuple[_Said, ...], _Form] = {}

    def form(self, turns: Sequence[_Said]) -> _Form | str:
        """The form of a conversation; or why it is refused."""
        texts = [each.strip() for _, content, thought in turns for each in (thought, content)]
        try:
            plain = self._rendered(turns)
            parts, lost = form = self._form(turns, texts)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  a template may raise anything
            name = type(error).__name__
            return _rule(f"the template refuses it ({name}: {error})")
        if len(plain) > _MOST_CHARACTERS:
            return _rule(f"the template makes more than {_MOST_CHARACTERS:,} characters of it")
        if "".join([part if isinstance(part, str) else texts[part] for part in parts]) != plain:
            return _rule(
                "the template changes its texts, so that where they are is not known: a template "
                "may strip them, and nothing else"
            )
        if (content := next((at for at in lost if at % 2), None)) is not None:
            return _rule(f"the template leaves out the text of message {content // 2 + 1}")
        return form

    def _form(self, turns: Sequence[_Said], texts: Sequence[str]) -> _Form:
        """The form of conversations that differ in their texts alone; none has wrong markers."""
        marked = tuple(
            (role, _around(content, texts, 2 * at + 1), _around(thought, texts, 2 * at))
            for at, (role, content, thought) in enumerate(turns)
        )
        if (known := self._forms.get(marked)) is not None:
            return known
        # Every second part is the number of a marker.
        split = _MARKER.split(self._rendered(marked))
        parts = tuple(int(part) if at % 2 else part for at, part in enumerate(split) if part)
        seen = {part for part in parts if isinstance(part, int)}
        lost = tuple(at for at, text in enumerate(texts) if text and at not in seen)
        if max(seen, default=0) >= len(texts):
            parts = ()
        if len(self._forms) >= _MOST_FORMS:
            self._forms.clear()
        return self._forms.setdefault(marked, (parts, lost))

    def _rendered(self, turns: Sequence[_Said]) -> str:
        messages = []
        for role, content, thought in turns:
            message = {"role": role, "content": content}
            if thought and self._thinking == "field":
                message["reasoning_content"] = thought
            elif thought:
                message["content"] = f"{_THINK}{thought}{_THOUGHT}{content}"
            messages.append(message)
        return self._template.render(messages=messages, **self._kwargs)


def _around(whole: str, texts: Sequence[str], at: int) -> str:
    """The marker of a text, with the blanks at the edges of the whole."""
    text = texts[at]
    marker = f"{_BEGIN}{at}{_END}"
    if len(text) == len(whole):
        return marker if text else ""
    return marker.join(whole.split(text, 1)) if text else whole


def _rule(text: str) -> str:
    return cut(printable(" ".join(text.split())), _MOST_RULE)

"""The columns of rows: types, shares of empty values, lengths, examples."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.corpora.raw.chat import lists
from gristmill.corpora.raw.chat.lists import is_nodes
from gristmill.corpora.raw.chat.messages import GUESSED
from gristmill.corpora.raw.chat.recipe import ALIASES, CONTROL, Transcripts, listed
from gristmill.corpora.raw.texts import Unfit, canonical

TEXT, NUMBER, TRUTH, OBJECT = "text", "number", "truth value", "object"
TEXTS, OBJECTS, TRUTHS, LIST = "list of texts", "list of objects", "list of truth values", "list"
MESSAGES, BYTES, EMPTY = "messages", "bytes", "empty"

ROLE_KEYS: Final = ("role", "from", "speaker", "author", "sender")
TEXT_KEYS: Final = ("content", "value", "text", "message", "parts")
SPEAKERS: Final = {
    **ALIASES,
    **dict.fromkeys(("client", "customer"), "user"),
    **dict.fromkeys(("bot", "model", "chatgpt", "ai", "bing", "bard"), "assistant"),
    **dict.fromkeys(("function", "observation", "ipython", "function_call"), "tool"),
    **dict.fromkeys(("function_response", "tool_call", "tool_response"), "tool"),
}
"""What speakers of messages mean, by their names in lower case."""
CHOSEN: Final = ("chosen", "preferred")
"""Columns of the better one of two answers."""
_OF_ITEMS: Final = ((str, TEXTS), (bool, TRUTHS), (dict, OBJECTS))
_MOST_COLUMNS: Final = 500
_MOST_VALUES: Final = 20
_EXAMPLE: Final = 60
_DEPTH: Final = 2


@dataclass
class Column:
    """One column, or one place `a.b` in a column of objects.

    filled: rows in which it is not null, an empty text, list or object.
    kinds: how often each type was there.
    chars: of its texts together, of a list those of its items.
    values: how often each short value was there, at most 20 of them.
    example: one value, cut.
    is_written: rows whose text is a list or an object in Python's or JSON's notation.
    """

    name: str
    filled: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    chars: int = 0
    values: Counter[str] = field(default_factory=Counter)
    example: str = ""
    is_written: int = 0

    @property
    def kind(self) -> str:
        """The type that most of its values have."""
        return self.kinds.most_common(1)[0][0] if self.kinds else EMPTY

    @property
    def mean(self) -> float:
        """Characters of a value that is not empty."""
        return self.chars / max(self.filled, 1)

    def add(self, value: Any) -> None:
        """Count a value."""
        if (kind := kind_of(value)) == EMPTY:
            return
        self.filled += 1
        self.kinds[kind] += 1
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self.chars += sum(map(len, value)) if kind == TEXTS else len(said)
        self.example = self.example or said[:_EXAMPLE]
        if kind == TEXT and said[:2] in ("[{", "{'", "['", '["', '{"'):
            self.is_written += 1
        if len(said) <= _EXAMPLE and (said in self.values or len(self.values) < _MOST_VALUES):
            self.values[said] += 1


@dataclass
class Columns:
    """The columns of some rows.

    rows: that were counted. by_name: places in objects included, in the order of the rows.
    """

    rows: int = 0
    by_name: dict[str, Column] = field(default_factory=dict)

    def first(self, names: Iterable[str]) -> str | None:
        """The first of some names that is a column, None where none is."""
        return next((name for name in names if name in self.by_name), None)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.rows += 1
        for name, value in _places(row):
            if name not in self.by_name:
                if len(self.by_name) >= _MOST_COLUMNS:
                    continue
                self.by_name[name] = Column(name)
            self.by_name[name].add(value)


def _places(row: Mapping[str, Any], begin: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        yield begin + name, value
        if isinstance(value, dict) and depth + 1 < _DEPTH and not is_nodes(value):
            yield from _places(value, f"{begin}{name}.", depth + 1)


def kind_of(value: Any) -> str:
    """The type of a value, in the words of a table."""
    if value is None or value in ("", [], {}):
        return EMPTY
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float):
        return NUMBER
    kind = TEXT if isinstance(value, str) else OBJECT if isinstance(value, dict) else LIST
    if isinstance(value, list):
        fitting = (of for item, of in _OF_ITEMS if all(isinstance(each, item) for each in value))
        kind = next(fitting, LIST)
    is_plain = kind in (LIST, TRUTHS) or message_keys(talk_of(value)) is None
    return kind if is_plain else MESSAGES


def talk_of(value: Any) -> Any:
    """The list of messages that a text in JSON, a list or an object holds, as a recipe reads it.

    Thoughts are messages in it; calls of tools without a role are left out. Of an object of nodes
    the messages of all. Returns any other value as it is.
    """
    is_text = isinstance(value, str) and value.lstrip()[:1] in ("[", "{")
    if not is_text and not isinstance(value, dict | list):
        return value
    try:
        is_tree = is_nodes(value)
        found = lists.messages_of(value.values(), "") if is_tree else lists.message_list(value)
        if not isinstance(found, list):
            return found
        kept = [each for each in found if not lists.call_of(each) or each.get("role")]
        return lists.with_thoughts(kept)
    except (GristmillError, Unfit, TypeError):
        return value


def message_keys(value: object) -> tuple[str, str] | None:
    """The keys of the speaker and of the text in a list of messages; None: it is no such list.

    One of the speakers is known, or the keys are usual; what the others are, a recipe says.
    """
    if not isinstance(value, list) or not value:
        return None
    for role, text in ((role, text) for role in ROLE_KEYS for text in TEXT_KEYS):
        if all(
            isinstance(each, dict) and text in each and isinstance(each.get(role), str)
            for each in value
        ) and ((role, text) in GUESSED or any(each[role].lower() in SPEAKERS for each in value)):
            return role, text
    return None


def turns_of(value: Any) -> list[tuple[str | None, Any]]:
    """What each message of a value is, as a role of a recipe, and its text; none of no messages.

    The role is None for a speaker that nobody knows.
    """
    talk = talk_of(value)
    keys = message_keys(talk)
    return [(SPEAKERS.get(each[keys[0]].lower()), each[keys[1]]) for each in talk] if keys else []


def joined(parts: Iterable[Columns]) -> Columns:
    """The columns of the rows of several files together."""
    made = Columns()
    for part in parts:
        made.rows += part.rows
        for name, column in part.by_name.items():
            known = made.by_name.setdefault(name, Column(name))
            known.filled += column.filled
            known.chars += column.chars
            known.is_written += column.is_written
            known.kinds += column.kinds
            known.example = known.example or column.example
            for value, count in column.values.items():
                if value in known.values or len(known.values) < _MOST_VALUES:
                    known.values[value] += count
    return made


Marks = dict[str, Any]
_MOST: Final = 0.8
_SPEAKERS: Final = {
    **SPEAKERS,
    **{"instruction": "user", "response": "assistant", "q": "user", "a": "assistant"},
    **{"function response": "tool", "tool response": "tool", "function call": "tool"},
    "moss": "assistant",
}
_WORD: Final = re.compile(
    r"(?:^|(?<=\n)|(?=#)|(?<=[ >])(?=[A-Z]{4}))(#{2,4} ?|<|\*\*)?"
    r"([A-Za-z]{1,20}(?: [A-Za-z]{1,20})?)(>|\*\*)?:(?:\*\*)?"
)
_TAG: Final = re.compile(r"(?:\[\||<[|｜])([A-Za-z]{1,20})(?:\|\]|[|｜]>):?|\[([A-Za-z]{1,20})\]:")
"""A speaker in brackets, as `[|Human|]`, `<|prompter|>` or `[Human]:`."""
_FEW: Final = 4
_ENDS: Final = (
    *("<s>", "</s>", "<bos>", "<eos>", "<|begin_of_text|>", "<|endoftext|>"),
    *("<eoh>", "<eoa>", "<eom>"),
)
_BOTH: Final = ("user", "assistant")
_ROLES: Final = ("system", "user", "assistant", "tool")


def _templates() -> Iterator[Marks]:
    """Yield the marks of templates that public models have."""
    for begin, close, model, end in (
        ("<|im_start|>", "<|im_sep|>", "assistant", "<|im_end|>"),
        ("<|im_start|>", "", "assistant", "<|im_end|>"),
        ("<|start_of_role|>", "<|end_of_role|>", "assistant", "<|end_of_text|>"),
        ("<|start_header_id|>", "<|end_header_id|>", "assistant", "<|eot_id|>"),
        ("<start_of_turn>", "", "model", "<end_of_turn>"),
        ("<|", "|>", "assistant", "<|end|>"),
    ):
        names = {role: role for role in _ROLES} | {"assistant": model}
        yield {role: f"{begin}{name}{close}" for role, name in names.items()} | {
            CONTROL: [end, *_ENDS]
        }
    yield {
        "user": "<｜User｜>",
        "assistant": "<｜Assistant｜>",
        CONTROL: ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
    }
    yield {
        "system": "[INST] <<SYS>>",
        "user": ["[INST]", "<</SYS>>"],
        "assistant": "[/INST]",
        CONTROL: [*_ENDS],
    }


def marks_of(texts: Sequence[str], *, is_open: bool = False) -> Marks | None:
    """The marks by which eight of ten texts are conversations, as a recipe has them; else None.

    texts: of a column. Few texts before the first mark, which come again and again, are `control`.
    is_open: whether the last answer must be empty, as where another column has it; default False.
    """
    texts = [canonical(text) for text in texts]
    named = (_words(texts, _TAG), _words(texts, _WORD))
    for marks in (*_templates(), *(each for each in named if each)):
        both = sum(_has(marks["user"], text) and _has(marks["assistant"], text) for text in texts)
        if texts and both >= _MOST * len(texts):
            found = _fitting(marks, texts, is_open)
            if found is not None:
                return found
    return None


def _fitting(marks: Marks, texts: Sequence[str], is_open: bool) -> Marks | None:
    """The marks that texts have, with the texts around messages; None where too few fit."""
    own = [each for each in marks[CONTROL] if any(each in text for text in texts)]
    reader = Transcripts({**marks, CONTROL: own})
    heads = (reader.head(text) for text in texts)
    before = Counter(said for head in heads if head and (said := reader.bare(head)))
    is_few = len(before) <= _FEW and all(count > 1 for count in before.values())
    control = [*own, *(before if is_few else ())]
    used = {
        role: mark
        for role, mark in marks.items()
        if role in _BOTH or (role != CONTROL and any(_has(mark, text) for text in texts))
    }
    made = {**used, **({CONTROL: control} if control else {})}
    reader = Transcripts(made)
    good = sum(_asks(reader, text, is_open) for text in texts)
    return made if good >= _MOST * len(texts) else None


def _asks(reader: Transcripts, text: str, is_open: bool) -> bool:
    """Whether a user is the first of a text, behind a system, and an assistant answers."""
    try:
        messages = [*reader.divided(text)]
    except Unfit:
        return False
    roles = [role for role, _ in messages]
    if is_open != (messages[-1:] == [("assistant", "")]):
        return False
    return [role for role in roles if role != "system"][:2] == ["user", "assistant"]


def _has(mark: Any, text: str) -> bool:
    return any(each in f"\n\n{text}" for each in listed(mark))


def _words(texts: Sequence[str], form: re.Pattern[str]) -> Marks:
    """The marks that are the names of speakers, as `### Human:`; empty where texts have none."""
    found: dict[str, Counter[str]] = {}
    for text in texts:
        for match in form.finditer(text):
            said = next(each for each in match.groups() if each and each[0].isalpha())
            if role := _SPEAKERS.get(said.lower()):
                found.setdefault(role, Counter())[match[0]] += 1
    if not {*_BOTH} <= {*found}:
        return {}
    marks = {role: _spelled(found[role], texts) for role in found}
    return {role: marks[role] for role in _ROLES if role in marks} | {CONTROL: [*_ENDS]}


def _spelled(found: Counter[str], texts: Sequence[str]) -> str | list[str]:
    """The mark that is there most often, and those that begin lines and have other capitals."""
    first, *others = [each for each, _ in found.most_common()]
    alike = [each for each in others if each.lower() == first.lower()]
    begun = [each for each in alike if any(f"\n{each}" in f"\n{text}" for text in texts)]
    marks = [_begun(each, texts) for each in (first, *begun)]
    return marks if begun else marks[0]


def _begun(mark: str, texts: Sequence[str]) -> str:
    """A mark with the line feeds that are always before it, so that none in a line counts."""
    begun = sum(text.startswith(mark) for text in texts)
    is_inner = mark.isupper() and sum(text.count(mark) for text in texts) > begun
    count = sum(text.count(f"\n{mark}") for text in texts)
    far = sum(text.count(f"\n\n{mark}") for text in texts)
    if mark.startswith("#") or _TAG.fullmatch(mark) or (is_inner and not count):
        return mark
    return f"\n\n{mark}" if far == count > 0 else f"\n{mark}"


_OPENS: Final = re.compile(
    r"\s*(?:<\|(?P<begin>begin_of_|start_of_|)(?P<bar>\w{1,40})\|>"
    r"|<(?P<angle>\w{1,40})>|\[(?P<square>\w{1,40})\])"
)
_THOUGHT: Final = {
    *("think", "thinking", "thought", "thoughts", "reasoning", "reason", "rationale"),
    *("scratchpad", "cot", "reflection", "analysis"),
}
_ANSWERS: Final = {"answer", "solution", "response", "output", "final"}
_TOKEN: Final = r"<\|[^<>|\s]{1,30}\|>:?|</?s>|<(?:eo[a-z]{1,6}|bos)>"
_BEGINS: Final = re.compile(rf"^(?:{_TOKEN})")
_ENDING: Final = re.compile(rf"(?:{_TOKEN})$")


def tags_of(texts: Sequence[str], least: float = _MOST) -> tuple[str, ...]:
    """The tags of thoughts with which most of some texts begin: two, or four with the answer's.

    least: the share of texts that have them; where fewer do, there are none. Default: eight of ten.
    """
    found = Counter(tags for text in texts if (tags := _tags_in(text)))
    tags, count = found.most_common(1)[0] if found else ((), 0)
    return tags if count >= least * len(texts) else ()


def around_of(texts: Sequence[str]) -> tuple[str, str] | None:
    """The two tags around eight of ten answers without a thought, as `<answer>`; else None."""
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        if (pair := _pair(text)) and _ANSWERS.intersection(pair[2].lower().split("_")):
            found[pair[:2]] += text.rstrip().endswith(pair[1])
    tags, count = found.most_common(1)[0] if found else (("", ""), 0)
    return tags if count and count >= _MOST * len(texts) else None


def ends_of(texts: Sequence[str]) -> list[str]:
    """The tokens of a template that eight of ten texts begin or end with, as `</s>`."""
    found: Counter[str] = Counter()
    for text in texts:
        said = (form.search(text.strip()) for form in (_BEGINS, _ENDING))
        found.update(match[0] for match in said if match)
    return [each for each, count in found.items() if count >= _MOST * len(texts)]


def _tags_in(text: str) -> tuple[str, ...]:
    """The tags of a text that begins with a thought; none for another."""
    if (first := _pair(text)) is None:
        return ()
    opens, closes, word = first
    _, closed, rest = text.partition(closes)
    if not closed or not _THOUGHT.intersection(word.lower().split("_")):
        return ()
    second = _pair(rest)
    is_around = second is not None and rest.rstrip().endswith(second[1])
    return (opens, closes, *second[:2]) if second and is_around else (opens, closes)


def _pair(text: str) -> tuple[str, str, str] | None:
    """The tag that a text begins with, the one that closes it, and its word; None for none."""
    if (match := _OPENS.match(text)) is None:
        return None
    opens = match[0].lstrip()
    if word := match["angle"]:
        return opens, f"</{word}>", word
    if word := match["square"]:
        return opens, f"[/{word}]", word
    word = match["bar"]
    return opens, f"<|end_of_{word}|>" if match["begin"] else f"<|/{word}|>", word

"""Marks in texts: of speakers, as `Human:` or `<|im_start|>user`, and tags around thoughts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from gristmill.corpora.raw.chat.recipe import CONTROL, Transcripts, listed
from gristmill.corpora.raw.texts import Unfit, canonical
from gristmill.look.columns import SPEAKERS

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


class Tags(NamedTuple):
    """What marks a thought. tags: two around it, and two more around the answer behind it."""

    tags: tuple[str, ...]
    share: float


def tags_of(texts: Sequence[str]) -> Tags | None:
    """The tags that most texts with a thought have, None where none begins with one."""
    found = Counter(tags for text in texts if (tags := _tags_in(text)))
    if not found:
        return None
    tags, count = found.most_common(1)[0]
    return Tags(tags, count / len(texts))


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
